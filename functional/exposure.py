"""Exposure in proportion to merit in the twin, with FairX-LinUCB."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fedbandit_envs.exposure import merit
from fedbandit_envs.functional.draws import threefry, uniform
from fedbandit_envs.functional.environment import Played
from fedbandit_envs.functional.federation import Arrays, lacks
from fedbandit_envs.functional.linear import LinearArms, OnRidge


class Exposure(LinearArms):
    """Agents give shares to arms with contexts; see :class:`~fedbandit_envs.exposure.env.ExposureEnv`."""

    seen = ("contexts", "merit_scale", "merit_floor")

    def __init__(self, host: Any, dtype: Any) -> None:
        """Takes the package's environment; see :class:`RowProblem`."""
        super().__init__(host, dtype)
        for one in host._merits.functions:
            if not isinstance(one, merit.Exponential | merit.Linear):
                raise lacks(f"merit {one!r}", "'exponential' or 'linear'")

    def params(self, host: Any) -> dict[str, np.ndarray]:
        """Returns those of :meth:`LinearArms.params`, keys of drawn arms, and each agent's merit function.

        It is exp(scale mu) where the floor is 0, and else max(mu, floor).
        """
        functions = host._merits.functions * (1 if host._merits.one_each else host.max_num_agents)
        either = {
            f"merit_{name}": np.full(host._reward.shape, [float(getattr(one, name, 0)) for one in functions])
            for name in ("scale", "floor")
        }
        return {**super().params(host), "arm_key": host._arms.key, **either}

    def best(self, params: Arrays, offered: Arrays) -> Array:
        """Returns the shares that arms deserve, ``(arms,)``; see :meth:`RowProblem.best`."""
        return jax.nn.softmax(merit_of(params, offered["mean"])[0])

    def play(self, params: Arrays, offered: Arrays, totals: Arrays, action: Array, round_: Array) -> Played:
        """Gives the arms the shares ``action``, and draws the arm that is pulled; see :meth:`RowProblem.play`."""
        reach = jnp.cumsum(action)
        less = self.best(params, offered) - action / reach[-1]
        beyond = reach > uniform(*threefry(params["arm_key"], round_, 0), self.dtype) * reach[-1]
        # The first arm at which the sum of shares exceeds the draw; with rounding there may be none.
        last = action.size - 1 - jnp.argmax(action[::-1] > 0)
        arm = jnp.where(beyond.any(), jnp.argmax(beyond), last)
        totals, reward, info = super().play(params, offered, totals, arm, round_)
        regret = {"regret": jnp.abs(less).sum(), "reward_regret": less @ offered["mean"]}
        return totals, reward, {**info, **regret}


def merit_of(known: Arrays, means: Array) -> tuple[Array, Array]:
    """Returns ln f(mu) and its derivative for an agent's merit function f.

    Args:
        known: The agent's instance or observation, with ``merit_scale`` and ``merit_floor``.
        means: The arms' means mu, ``(arms,)``.
    """
    scale, floor = known["merit_scale"], known["merit_floor"]
    some = jnp.maximum(means, jnp.where(floor > 0, floor, 1.0))
    slope = jnp.where(floor > 0, jnp.where(means > floor, 1.0 / some, 0.0), scale)
    return jnp.where(floor > 0, jnp.log(some), scale * means), slope


@dataclass(frozen=True)
class PureFairX(OnRidge):
    """FairX-LinUCB by Frank and Wolfe's steps; see :class:`fedbandit_envs.baselines.exposure.FairX`.

    Attributes:
        steps: Number of steps.

    Example:
        >>> from fedbandit_envs.functional import PureFairX, make, rollout
        >>> env = make("FedExposure-v0", num_agents=2, num_arms=4, dim=3, max_cycles=50)
        >>> rollout(env, PureFairX(beta_scale=0.1), seeds=range(3)).regret[-1].shape
        (3, 2)
    """

    needs: ClassVar[tuple[str, ...]] = ("statistic", "merit_scale")
    failure: float = 0.05
    steps: int = 3

    def act(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns the shares that are fair for an optimistic parameter; see :meth:`PurePolicy.act`."""
        carry = self.learn(params, carry, observation)
        contexts, radius = observation["contexts"], self.radius(params, carry)
        inverse = carry["shrinkage"] / params["ridge"]
        middle = inverse @ carry["moment"]

        def climb(_: Any, parameter: Array) -> Array:
            means = contexts @ parameter
            logarithm, slope = merit_of(observation, means)
            shares = jax.nn.softmax(logarithm)
            gradient = (shares * (1.0 + slope * (means - shares @ means))) @ contexts
            product = inverse @ gradient
            form = gradient @ product
            return (
                middle + jnp.where(form > 0, radius / jnp.sqrt(jnp.where(form > 0, form, 1.0)), 0.0) * product
            )

        best = lax.fori_loop(0, self.steps, climb, middle)
        return carry, jax.nn.softmax(merit_of(observation, contexts @ best)[0])
