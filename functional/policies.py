"""What the twin's policies have in common: constants as parameters, and what agents know from messages.

A policy acts for one row (an agent of a replica): ``act(params, carry, observation)`` returns the new carry and an
action, without side effects. ``params`` are its constants (or a network's weights), the same for all rows, so that one
can take gradients, or try many constants at once by ``jax.vmap``. The carry is what an agent remembers.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, ClassVar

import jax.numpy as jnp
from gymnasium.spaces import Discrete
from jax import Array, lax

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.functional.draws import fraction, threefry
from fedbandit_envs.functional.environment import Environment
from fedbandit_envs.functional.federation import Arrays


@dataclass(frozen=True)
class PurePolicy(ABC):
    """The base class of policies; a subclass is a frozen dataclass, whose ``float`` fields are its parameters.

    Attributes:
        needs: Names of released arrays, or entries of the observation, without which it cannot play.
    """

    needs: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Checks that the parameters are finite numbers >= 0.

        Raises:
            TypeError: One is no number.
            ValueError: One is out of its range.
        """
        for name, value in self.params().items():
            require_number(name, value, 0, inf)

    def params(self) -> dict[str, float]:
        """Returns the parameters by name: all fields of type ``float`` that are not None."""
        constants = {one.name: getattr(self, one.name) for one in fields(self) if "float" in str(one.type)}
        return {name: value for name, value in constants.items() if value is not None}

    def start(self, env: Environment, params: Arrays, key: Array) -> Arrays:
        """Returns what an agent remembers before the first round; here nothing.

        Args:
            env: The environment.
            params: The agent's instance; only what it will observe may be used.
            key: The agent's seed as a key of random numbers, uint32 ``(2,)``.
        """
        return {}

    @abstractmethod
    def act(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns the new carry and the agent's action.

        Args:
            params: What :meth:`params` returns, or other values of the same names.
            carry: What :meth:`start` or the last call returned.
            observation: The agent's observation.
        """


@dataclass(frozen=True)
class PureRandom(PurePolicy):
    """Pulls each arm with the same probability in every round.

    Example:
        >>> from fedbandit_envs.functional import PureRandom, make, rollout
        >>> rollout(make("FedArms-v0", num_agents=2, max_cycles=50), PureRandom(), seeds=range(3)).regret[-1].shape
        (3, 2)
    """

    def start(self, env: Environment, params: Arrays, key: Array) -> Arrays:
        """Returns the key and the number of arms; see :meth:`PurePolicy.start`.

        Raises:
            UnfitError: Agents do not pull one arm in a round.
        """
        space = env.host.unwrapped.single_action_space
        if not isinstance(space, Discrete):
            raise UnfitError(f"PureRandom needs an action that is an arm; the environment has {space}")
        return {"key": key, "arms": jnp.int32(space.n)}

    def act(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns a random arm; see :meth:`PurePolicy.act`."""
        word, _ = threefry(carry["key"], observation["round"], 0)
        return carry, (fraction(word, jnp.float32) * carry["arms"]).astype(jnp.int32)


class Indexed(PurePolicy):
    """The base class of policies that pull the arm with the largest index, of equal ones the first."""

    @abstractmethod
    def index(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns the new carry and the index of each arm, ``(arms,)``; see :meth:`act` for the arguments."""

    def act(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns the arm with the largest index; see :meth:`PurePolicy.act`."""
        carry, index = self.index(params, carry, observation)
        return carry, jnp.argmax(index)


@dataclass(frozen=True)
class OnCounts(PurePolicy):
    """The base class of policies that know two released numbers, ``needs``: of trials, and of successes (or rewards).

    Attributes:
        pool: ``"sum"`` adds what is received; ``"precision"`` counts it as the number of exact outcomes that are as
            informative, see :mod:`fedbandit_envs.baselines.aggregators`. Where the noises of releases are independent,
            each round's sum over the other agents is weighed by itself, else the sum of all rounds.
        ratios: Least and largest possible mean of outcomes.
    """

    pool: str = field(default="sum", kw_only=True)
    ratios: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Checks the pool and the parameters; see :class:`PurePolicy`.

        Raises:
            TypeError: A parameter is no number.
            ValueError: A parameter is out of its range, or ``pool`` no name.
        """
        super().__post_init__()
        require_choice("pool", self.pool, ("sum", "precision"))

    def start(self, env: Environment, params: Arrays, key: Array) -> Arrays:
        """Returns a memory in which nothing has been received; see :meth:`PurePolicy.start`."""
        if not env.federation.exists:
            return {}
        memory = {"received": jnp.zeros((2, *env.released[self.needs[0]]), env.dtype)}
        if env.federation.correlated and self.pool == "precision":
            memory["messages"] = jnp.concatenate([memory["received"]] * 2)
        return memory

    def known(self, carry: Arrays, observation: Arrays) -> tuple[Arrays, Sequence[Any], Sequence[Any]]:
        """Returns the new carry, own numbers of trials and successes, and received ones, ``(items,)`` each."""
        dtype = carry["received"].dtype if "received" in carry else float
        own = [observation[f"total_{name}"].astype(dtype) for name in self.needs]
        if "received" not in carry:
            return carry, own, (0.0, 0.0)
        heard = lax.cond(
            observation["inbox_mask"], lambda: self._listen(carry, jnp.stack(own), observation), lambda: carry
        )
        return heard, own, [*heard["received"]]

    def _listen(self, carry: Arrays, own: Array, observation: Arrays) -> Arrays:
        """Returns the carry after the messages of a round."""
        names = [f"inbox_{name}" for name in self.needs]
        message = jnp.stack([observation[name] for name in names])
        if self.pool == "sum":
            return {**carry, "received": carry["received"] + message}
        noise = [observation.get(variance_of(name), jnp.zeros_like(message[0])) for name in names]
        message = jnp.concatenate([message, jnp.stack(noise)])
        spread = self.spread(carry, own + carry["received"])
        if "messages" not in carry:
            return {**carry, "received": carry["received"] + exact_outcomes(message, spread, self.ratios)}
        message += carry["messages"]
        return {**carry, "received": exact_outcomes(message, spread, self.ratios), "messages": message}

    def spread(self, carry: Arrays, known: Array) -> Array:
        """Returns about the variance of one outcome of each item, given what is known, ``(2, items)``."""
        quality = jnp.clip((known[1] + 1.0) / (known[0] + 2.0), 0.02, 0.98)
        return quality * (1.0 - quality)


def exact_outcomes(message: Array, spread: Array, ratios: tuple[float, float]) -> Array:
    """Returns the numbers of exact outcomes and successes that are as informative as noisy ones, ``(2, items)``.

    The formula is that of counts in :mod:`fedbandit_envs.baselines.aggregators`, for independent noise in both numbers.

    Args:
        message: Noisy numbers of outcomes and of successes, and the variances of their noise, ``(4, items)``.
        spread: Variance of one outcome, ``(items,)``.
        ratios: Least and largest mean of outcomes.
    """
    outcomes, good, of_outcomes, of_good = message
    certain = outcomes > 4.0 * jnp.sqrt(jnp.maximum(of_outcomes, 0.0))
    outcomes = jnp.where(certain, outcomes, 1.0)
    ratio = jnp.clip(good / outcomes, *ratios)
    noise = jnp.maximum(of_good + ratio * ratio * of_outcomes, 0.0)
    worth = jnp.where(certain, outcomes * (spread * outcomes / (noise + spread * outcomes)), 0.0)
    return jnp.stack([worth, worth * ratio])
