"""What the twin's environments have in common: one agent's problem as pure functions, mapped over agents and replicas.

A problem is written for one row (an agent of a replica). :class:`Environment` maps it over the agents of a federation
and lets them exchange messages, and ``jax.vmap`` maps that over replicas. Instances are drawn by the package's own
environment, so that equal seeds give equal instances; what happens in rounds is drawn from the same keys and counters.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.functional.federation import Arrays, Federation
from fedbandit_envs.randomness.streams import row_seeds

Played = tuple[Arrays, Array, Arrays]
"""What a round leads to: a new state (or totals), rewards, and information by name, which includes ``regret``."""

COMMON = ("round", "inbox_mask")
"""Entries of observations that all agents of all replicas have in common: numbers without an axis."""


class RowProblem(ABC):
    """One agent's bandit problem as pure functions; all arrays are those of a row.

    Attributes:
        seen: Names of the parameters and offers that the agent observes, beside all its totals.
        shared: Names of the parameters that all agents of a replica share.
    """

    seen: ClassVar[tuple[str, ...]] = ()
    shared: ClassVar[tuple[str, ...]] = ()

    def __init__(self, host: Any, dtype: Any) -> None:
        """Takes the package's environment, whose settings the twin has, and the dtype of the twin's numbers.

        Raises:
            ValueError: The environment has something that the twin lacks.
        """
        self.dtype = dtype

    @abstractmethod
    def params(self, host: Any) -> dict[str, np.ndarray]:
        """Returns the instances that the package's environment has just drawn, ``(replicas, agents, ...)`` by name."""

    @abstractmethod
    def begin(self, params: Arrays) -> Arrays:
        """Returns the totals before the first round, named as in the package's observations."""

    def offer(self, params: Arrays, round_: Array) -> Arrays:
        """Returns what is drawn before the agent acts in a round (counted from 0), such as contexts; here nothing."""
        return {}

    def best(self, params: Arrays, offered: Arrays) -> Array:
        """Returns the best action among what :meth:`offer` returned, which must not be nothing; here it is."""
        # It is not abstract: it is asked only of problems that offer something.
        raise NotImplementedError

    @abstractmethod
    def play(self, params: Arrays, offered: Arrays, totals: Arrays, action: Array, round_: Array) -> Played:
        """Plays a round.

        Args:
            params: The agent's instance.
            offered: What :meth:`offer` returns for the round.
            totals: What the agent has seen so far.
            action: Its action.
            round_: The round, counted from 0.

        Returns:
            The new totals, the reward, and information by name, which includes ``regret``.
        """


class Environment:
    """A federation of agents as pure functions: the same instances, draws and numbers as the package's batch API.

    Parameters, states and observations are mappings of arrays by name, one replica each: they lead with the agents'
    axis. Functions take and return them without side effects, so that ``jax.jit``, ``jax.vmap`` (over replicas) and
    ``jax.lax.scan`` (over rounds) apply. Observations have the names of the package's; messages are the sum over all
    other agents of what these have released, ``inbox_{name}``, without an axis of senders.

    Example:
        >>> import jax
        >>> from fedbandit_envs.functional import make
        >>> env = make("FedArms-v0", num_agents=3, num_arms=4)
        >>> params = env.params(seeds=[7, 8])
        >>> state, observation = jax.vmap(env.reset)(params)
        >>> state, observation, reward, info = jax.vmap(env.step)(params, state, jax.numpy.zeros((2, 3), int))
        >>> observation["total_pulls"].shape, bool((info["regret"] >= 0).all())
        ((2, 3, 4), True)

    Attributes:
        host: The package's environment with its wrappers, whose settings the twin has.
        num_agents: Number of agents.
        max_cycles: The horizon.
        dtype: The dtype of all numbers that are no integers.
        settings: The id and the arguments that :func:`make` was given, by name.
        released: Shapes of the arrays that an agent has to release, by name.
    """

    def __init__(
        self, host: FederatedEnv, problem: type[RowProblem], dtype: Any, settings: dict[str, Any]
    ) -> None:
        """Takes the package's environment, which nobody else uses from now on, and the twin's problem.

        Raises:
            ValueError: The environment has something that the twin lacks.
        """
        self.host, self.dtype, self.settings = host, jnp.dtype(dtype), settings
        self.num_agents, self.max_cycles = host.max_num_agents, host.max_cycles
        self.problem = problem(host.unwrapped, self.dtype)
        self.federation = Federation.of(host)
        own = host.unwrapped.single_release_space
        self.released: dict[str, tuple[int, ...]] = {name: space.shape or () for name, space in own.items()}

    @contextmanager
    def precision(self) -> Iterator[None]:
        """Lets JAX compute in the environment's dtype within a ``with`` block; no setting of JAX lasts beyond it.

        Otherwise JAX has 32 bits, unless its own setting ``jax_enable_x64`` says something else, and on some processors
        rounds the factors of products of matrices.
        """
        with jax.enable_x64(self.dtype == jnp.float64), jax.default_matmul_precision("highest"):
            yield

    def params(self, seeds: Sequence[int]) -> Arrays:
        """Returns the instances of episodes, ``(replicas, agents, ...)`` by name, drawn by the package on the host.

        Args:
            seeds: One seed for each replica.
        """
        host = self.host.unwrapped
        host.reset_batch(seeds)
        drawn = self.problem.params(host) | self.federation.params(host, seeds)
        kinds = {"f": self.dtype, "i": np.int32, "u": np.uint32, "b": np.bool_}
        with self.precision():
            return {name: jnp.asarray(array.astype(kinds[array.dtype.kind])) for name, array in drawn.items()}

    def keys(self, seeds: Sequence[int]) -> np.ndarray:
        """Returns the seeds of all agents' policies as keys of random numbers, uint32 ``(replicas, agents, 2)``.

        Args:
            seeds: One seed for each replica.
        """
        return row_seeds(seeds, self.num_agents).view(np.uint32).reshape(len(seeds), self.num_agents, 2)

    def reset(self, params: Arrays) -> tuple[Arrays, Arrays]:
        """Returns the state and the observations before the first round.

        Args:
            params: The instance of one replica.
        """
        return self._shown(params, jnp.int32(0), self.start(params))

    def step(self, params: Arrays, state: Arrays, action: Array) -> tuple[Arrays, Arrays, Array, Arrays]:
        """Plays one round.

        Args:
            params: The instance of one replica.
            state: The state that :meth:`reset` or the last step returned.
            action: One action an agent, ``(agents, ...)``.

        Returns:
            The new state, the observations, the rewards ``(agents,)``, and information by name, ``(agents,)`` each,
            which includes the ``regret`` of the round.
        """
        round_ = state["round"]
        state, reward, info = self.play(params, self.offer(params, round_), state, action, round_)
        return *self._shown(params, round_ + 1, state), reward, info

    def _shown(self, params: Arrays, round_: Array, state: Arrays) -> tuple[Arrays, Arrays]:
        seen = self.observe(params, self.offer(params, round_), state)
        return {**state, "round": round_}, {**seen, **self.common(round_)}

    def start(self, params: Arrays) -> Arrays:
        """Returns the state before the first round, without the number of the round."""
        totals = jax.vmap(self.problem.begin, (axes(params, self.problem.shared),))(params)
        return {"totals": totals, **self.federation.start(self._sums(totals))}

    def offer(self, params: Arrays, round_: Array) -> Arrays:
        """Returns what is drawn for all agents before they act in a round, ``(agents, ...)`` by name."""
        return jax.vmap(self.problem.offer, (axes(params, self.problem.shared), None))(params, round_)

    def observe(self, params: Arrays, offered: Arrays, state: Arrays) -> Arrays:
        """Returns what agents see, but for :data:`COMMON`, ``(agents, ...)`` by name."""
        shown = {**params, **offered}
        return {name: shown[name] for name in self.problem.seen} | state["totals"] | state["inbox"]

    def common(self, round_: Array) -> Arrays:
        """Returns the entries of observations that all agents have in common: :data:`COMMON`."""
        return {"round": round_, "inbox_mask": self.federation.due(round_)}

    def play(self, params: Arrays, offered: Arrays, state: Arrays, action: Array, round_: Array) -> Played:
        """Plays a round; see :meth:`step`. ``offered`` is what :meth:`offer` returns for it.

        Raises:
            ValueError: Actions have another shape than one for each agent.
        """
        shape = (self.num_agents, *(self.host.unwrapped.single_action_space.shape or ()))
        if jnp.shape(action) != shape:
            raise ValueError(f"action has shape {jnp.shape(action)}; {shape}, one an agent, is required")
        mapped = axes(params, self.problem.shared), 0, 0, 0, None
        totals, reward, info = jax.vmap(self.problem.play, mapped)(
            params, offered, state["totals"], action, round_
        )
        sent = self.federation.exchange(params, self._sums(totals), state, round_ + 1)
        return {"totals": totals, **sent}, reward, info

    def _sums(self, totals: Arrays) -> Arrays:
        """Returns the totals that agents release, by the names of their messages."""
        return {name: totals[f"total_{name}"].astype(self.dtype) for name in self.released}


def axes(arrays: Arrays, common: Sequence[str]) -> dict[str, int | None]:
    """Returns the axes over which ``jax.vmap`` maps arrays by name: the first one, but for those in ``common``."""
    return {name: None if name in common else 0 for name in arrays}


def pick(values: Array, hot: Array) -> Array:
    """Returns the entry of ``values`` at which ``hot`` is true: on all processors faster than an index that differs."""
    return jnp.where(hot, values, 0).sum(dtype=values.dtype)
