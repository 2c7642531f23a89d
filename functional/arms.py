"""Bernoulli arms in the twin, with UCB1 and Thompson sampling."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fedbandit_envs.baselines.arms import LogName
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.functional.draws import fraction, normal_pair, threefry
from fedbandit_envs.functional.environment import Environment, Played, RowProblem, pick
from fedbandit_envs.functional.federation import Arrays, lacks
from fedbandit_envs.functional.policies import Indexed, OnCounts


class Arms(RowProblem):
    """Agents pull one of K arms whose successes are Bernoulli; see :class:`~fedbandit_envs.arms.env.ArmsEnv`."""

    def __init__(self, host: Any, dtype: Any) -> None:
        """Takes the package's environment; see :class:`Problem`."""
        super().__init__(host, dtype)
        if host._slots > 1:
            raise lacks(f"slots={host._slots}", "1")
        if host._chance < 1:
            raise lacks(f"awake={host._chance}", "1")

    def params(self, host: Any) -> dict[str, np.ndarray]:
        """Returns bounds of random words, values by which regret is measured, and keys of outcomes."""
        return {
            # A pull succeeds if this is possible at all, and its random word at most the package's cutoff less 1.
            "possible": host._cutoffs > 0,
            "most": (host._cutoffs - 1).astype(np.uint32),
            "value": host._values,
            "best": host._best,
            "key": host._outcomes.key,
        }

    def begin(self, params: Arrays) -> Arrays:
        """Returns no pulls and no successes, int32 ``(arms,)``."""
        nothing = jnp.zeros(params["most"].shape, jnp.int32)
        return {"total_pulls": nothing, "total_successes": nothing}

    def play(self, params: Arrays, offered: Arrays, totals: Arrays, action: Array, round_: Array) -> Played:
        """Pulls the arm ``action``; see :meth:`RowProblem.play`."""
        hot = jnp.arange(params["most"].size) == action
        word, _ = threefry(params["key"], round_, action)
        good = hot & params["possible"] & (word <= params["most"])
        totals = {
            "total_pulls": totals["total_pulls"] + hot,
            "total_successes": totals["total_successes"] + good,
        }
        return totals, good.any().astype(self.dtype), {"regret": params["best"] - pick(params["value"], hot)}


@dataclass(frozen=True)
class OnSuccesses(OnCounts, Indexed):
    """The base class of policies that score each arm by its pulls and successes; arms without pulls come first."""

    needs: ClassVar[tuple[str, ...]] = ("pulls", "successes")

    @abstractmethod
    def scores(self, params: Arrays, carry: Arrays, round_: Array, pulls: Array, successes: Array) -> Array:
        """Returns the scores of all arms in a round, counted from 1, of their pulls and successes, ``(arms,)``."""

    def index(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns the scores, and infinity for arms without pulls; see :meth:`Indexed.index`."""
        carry, own, received = self.known(carry, observation)
        # Noise can make received numbers negative, or successes more than pulls.
        more = jnp.maximum(received[0], 0)
        pulls, successes = own[0] + more, own[1] + jnp.clip(received[1], 0, more)
        scores = self.scores(params, carry, observation["round"] + 1, pulls, successes)
        return carry, jnp.where(pulls > 0, scores, jnp.inf)


@dataclass(frozen=True)
class PureUCB1(OnSuccesses):
    """UCB1; see :class:`fedbandit_envs.baselines.arms.UCB1`.

    Attributes:
        scale: Factor under the square root.
        logarithm: ``"round"`` for ln t of the round t, ``"horizon"`` for ln T of the horizon T, ``"horizon_per_pull"``
            for ln(T / n) after n pulls, or 0 where n > T, as in MOSS.

    Example:
        >>> from fedbandit_envs.functional import PureUCB1, make, rollout
        >>> env = make("FedArms-v0", num_agents=2, max_cycles=50)
        >>> rollout(env, PureUCB1(scale=0.5), seeds=range(3)).regret[-1].shape
        (3, 2)
    """

    scale: float = 2.0
    logarithm: LogName = "round"

    def __post_init__(self) -> None:
        """Checks the names and the scale; see :class:`OnCounts`.

        Raises:
            TypeError: ``scale`` is no number.
            ValueError: It is out of its range, or ``pool`` or ``logarithm`` no name.
        """
        super().__post_init__()
        require_choice("logarithm", self.logarithm, get_args(LogName))

    def start(self, env: Environment, params: Arrays, key: Array) -> Arrays:
        """Returns a memory without messages, with ln T where it is used; see :meth:`PurePolicy.start`."""
        memory = super().start(env, params, key)
        if self.logarithm != "round":
            memory["logarithm"] = jnp.log(jnp.asarray(env.max_cycles, env.dtype))
        return memory

    def scores(self, params: Arrays, carry: Arrays, round_: Array, pulls: Array, successes: Array) -> Array:
        """Returns the upper confidence bound of each arm; see :meth:`OnSuccesses.scores`."""
        logarithm = carry.get("logarithm", jnp.log(round_.astype(pulls.dtype)))
        if self.logarithm == "horizon_per_pull":
            logarithm = jnp.maximum(logarithm - jnp.log(pulls), 0.0)
        return successes / pulls + jnp.sqrt(params["scale"] * logarithm / pulls)


@dataclass(frozen=True)
class PureThompson(OnSuccesses):
    """Thompson sampling; see :class:`fedbandit_envs.baselines.arms.ThompsonSampling`.

    Example:
        >>> from fedbandit_envs.functional import PureThompson, make, rollout
        >>> rollout(make("FedArms-v0", num_agents=2, max_cycles=50), PureThompson(), seeds=range(3)).regret[-1].shape
        (3, 2)
    """

    def start(self, env: Environment, params: Arrays, key: Array) -> Arrays:
        """Returns a memory without messages, and a key of random numbers for each arm; see :meth:`PurePolicy.start`."""
        words = threefry(key, 0, jnp.arange(env.released["pulls"][0]))
        return {**super().start(env, params, key), "keys": jnp.stack(words, axis=-1)}

    def scores(self, params: Arrays, carry: Arrays, round_: Array, pulls: Array, successes: Array) -> Array:
        """Returns a draw from the posterior Beta(1 + successes, 1 + failures) of each arm."""
        good = _gamma(carry["keys"], round_, successes + 1.0, 0)
        return good / (good + _gamma(carry["keys"], round_, pulls - successes + 1.0, 1))


def _gamma(keys: Array, round_: Array, shapes: Array, half: int) -> Array:
    """Returns gamma variates of scale 1 and shapes >= 1, by rejection (Marsaglia and Tsang 2000).

    Attempt i makes a normal number of pair 2 i of the key's words, and a uniform one of pair 2 i + 1; of both pairs it
    uses the member ``half``. The variates are those of the package.
    """
    d = shapes - 1.0 / 3.0

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        pair, found, value = state
        draw = jax.vmap(threefry, (0, None, None))
        normal = normal_pair(*draw(keys, round_, pair))[half].astype(d.dtype)
        unit = fraction(draw(keys, round_, pair + 1)[half], d.dtype, bits=31)
        v = 1.0 + normal / jnp.sqrt(9.0 * d)
        cube = v * v * v
        bound = 0.5 * normal * normal + d * (1.0 - cube + jnp.log(jnp.where(v > 0.0, cube, 1.0)))
        good = (v > 0.0) & (jnp.log(unit) < bound)
        return pair + 2, found | good, jnp.where(found, value, d * cube)

    state = jnp.uint32(0), jnp.zeros(d.shape, bool), jnp.zeros_like(d)
    return lax.while_loop(lambda state: ~state[1].all(), attempt, state)[2]
