"""Gaussian arms in the twin, with Gaussian-UCB."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from fedbandit_envs.functional.draws import normal_pair, threefry
from fedbandit_envs.functional.environment import Environment, Played, RowProblem, pick
from fedbandit_envs.functional.federation import Arrays
from fedbandit_envs.functional.policies import Indexed, OnCounts


class GaussianArms(RowProblem):
    """Agents pull one of K arms with normal rewards; see :class:`~fedbandit_envs.gaussian.env.GaussianEnv`."""

    def __init__(self, host: Any, dtype: Any) -> None:
        """Takes the package's environment; see :class:`Problem`."""
        super().__init__(host, dtype)
        self._deviation, self._bound = host._deviation, host._bound

    def params(self, host: Any) -> dict[str, np.ndarray]:
        """Returns means, worths, by which regret is measured, and keys of rewards."""
        return {"mean": host._means, "worth": host._worths, "best": host._best, "key": host._outcomes.key}

    def begin(self, params: Arrays) -> Arrays:
        """Returns no pulls, int32 ``(arms,)``, and no rewards."""
        nothing = jnp.zeros_like(params["mean"])
        return {"total_pulls": nothing.astype(jnp.int32), "total_rewards": nothing}

    def play(self, params: Arrays, offered: Arrays, totals: Arrays, action: Array, round_: Array) -> Played:
        """Pulls the arm ``action``; see :meth:`RowProblem.play`."""
        hot = jnp.arange(params["mean"].size) == action
        normal, _ = normal_pair(*threefry(params["key"], round_, action))
        drawn = pick(params["mean"], hot) + self._deviation * normal.astype(self.dtype)
        reward = jnp.clip(drawn, -self._bound, self._bound)
        totals = {
            "total_pulls": totals["total_pulls"] + hot,
            "total_rewards": totals["total_rewards"] + jnp.where(hot, reward, 0.0),
        }
        regret = params["best"] - pick(params["worth"], hot)
        return totals, reward, {"regret": regret, "clipped": reward != drawn}


@dataclass(frozen=True)
class PureGaussianUCB(OnCounts, Indexed):
    """Upper confidence bounds of Gaussian arms; see :class:`fedbandit_envs.baselines.gaussian.GaussianUCB`.

    Attributes:
        radius_scale: Factor of the confidence radius.

    Example:
        >>> from fedbandit_envs.functional import PureGaussianUCB, make, rollout
        >>> rollout(make("FedMixed-v0", max_cycles=50), PureGaussianUCB(0.5), seeds=range(3)).regret[-1].shape
        (3, 4)
    """

    radius_scale: float = 1.0
    needs: ClassVar[tuple[str, ...]] = ("pulls", "rewards")
    ratios: ClassVar[tuple[float, float]] = (-jnp.inf, jnp.inf)

    def start(self, env: Environment, params: Arrays, key: Array) -> Arrays:
        """Returns a memory without messages, and the standard deviation of rewards; see :meth:`PurePolicy.start`."""
        deviation = jnp.asarray(env.host.unwrapped.public["reward_sd"], env.dtype)
        return {**super().start(env, params, key), "deviation": deviation}

    def spread(self, carry: Arrays, known: Array) -> Array:
        """Returns the variance of a reward; see :meth:`OnCounts.spread`."""
        return carry["deviation"] ** 2

    def index(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns the bounds, and infinity for arms without pulls; see :meth:`Indexed.index`."""
        carry, own, received = self.known(carry, observation)
        pulls, rewards = (mine + theirs for mine, theirs in zip(own, received, strict=True))
        many = jnp.maximum(pulls, 1.0)
        logarithm = jnp.log((observation["round"] + 1).astype(many.dtype))
        width = params["radius_scale"] * carry["deviation"] * jnp.sqrt(2.0 * logarithm / many)
        return carry, jnp.where(pulls > 0, rewards / many + width, jnp.inf)
