"""Short episodes of federations, in which random actions are played."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array, spread
from fedbandit_envs.core.actions import ends_of
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.wrapper import Layer, find_layer, layers
from fedbandit_envs.testing.assertions import mapped, require, taken

Make = Callable[[], FederatedEnv]
"""A function that makes a new federation at each call, always with the same settings."""

Wrap = Callable[[FederatedEnv], FederatedEnv]
"""A function that puts wrappers around a federation."""

HORIZON = 12
"""Number of rounds of the episodes that are checked."""

SEEDS = (3, 5, 8)
"""Seeds of the replicas."""


class Trial:
    """A new federation, with random actions and senders for one short episode of it.

    Attributes:
        make: The function that makes the federation.
        env: The federation; its horizon is the number of rounds.
        seeds: Seed of each replica.
        rows: Numbers of replicas and agents, ``(replicas, agents)``: the leading axes of all arrays.
        everyone: An array that is all true, to let all agents send, bool ``(replicas, agents)``. The attribute
            ``nobody`` is an array that is all false.
        chosen: One agent of each replica, which :meth:`altered` lets act otherwise, bool ``(replicas, agents)``.
        horizon: Number of rounds.
        senders: Whether each agent sends after each round, bool ``(rounds, replicas, agents)``; all false if the
            federation has a transport, which decides when agents send.
    """

    def __init__(self, make: Make, seeds: Sequence[int] = SEEDS, rounds: int = HORIZON) -> None:
        """Makes the federation and draws senders; the same arguments always give the same draws, of actions too.

        Args:
            make: A function that makes the federation.
            seeds: Seed of each replica.
            rounds: Number of rounds of the episode.
        """
        self.make, self.seeds, self.horizon = make, seeds, rounds
        self.env = env = make()
        env.max_cycles = rounds
        for level in layers(env):
            found = f"{type(level).__name__} inside has {level.max_cycles}; let wrappers pass it on"
            require(level.max_cycles == rounds, f"max_cycles was set to {rounds}, but {found}")
        self.rows = replicas, agents = len(seeds), env.max_num_agents
        self.everyone, self.nobody = np.ones(self.rows, np.bool_), np.zeros(self.rows, np.bool_)
        self.chosen: Array = np.arange(agents) == np.arange(replicas)[:, np.newaxis] % agents
        probability = 0.5 if find_layer(env, "transport") is None else 0.0
        self.senders = np.random.default_rng(0).random((rounds, *self.rows)) < probability

    @cached_property
    def actions(self) -> list[Any]:
        """Actions of all agents, one array for each round."""
        return random_choices(self.env.single_action_space, self.rows, self.horizon)

    def again(self, part: slice = slice(None)) -> "Trial":
        """Returns a trial of a new federation with the same settings, actions and senders, perhaps of some replicas."""
        other = Trial(self.make, self.seeds[part], self.horizon)
        other.actions = [taken(action, part) for action in self.actions]
        other.senders = self.senders[:, part].copy()
        return other

    def altered(self, where: Array, one_component: bool = False) -> "Trial":
        """Returns a second trial, in which the chosen agents act otherwise in some rounds.

        In every fourth replica they then choose the largest action if the space has one, in every fourth the smallest.

        Args:
            where: These rounds, bool ``(rounds, replicas)`` or ``(rounds, 1)``.
            one_component: Whether actions of several components differ in one component only, the same one in all
                rounds.
        """
        other, space = self.again(), self.env.single_action_space
        choices = random_choices(space, self.rows, 2 * self.horizon)[self.horizon :]
        components = space.nvec.size if one_component and isinstance(space, spaces.MultiDiscrete) else 1
        differs = np.arange(components) == np.arange(self.rows[0])[:, np.newaxis, np.newaxis] % components
        # The largest and the smallest element of a space of several numbers, as far as it has these.
        both = ends_of(space)[::-1] if isinstance(space, spaces.Box | spaces.MultiDiscrete) else ()
        ends = [end for end in both if np.isfinite(end).all() and space.contains(end)]
        for t, choice in enumerate(choices):
            chosen = self.chosen & where[t][:, np.newaxis]
            for place, end in enumerate(ends):
                choice[place::4] = end
            other.actions[t] = _merged(chosen, differs, self.actions[t], choice)
        return other

    def rounds(self, start: int = 0, stop: int | None = None) -> Iterator[dict[str, Any]]:
        """Plays rounds, each followed by a release, and yields copies of each round's results, by name."""
        for action, sends in zip(self.actions[start:stop], self.senders[start:stop], strict=True):
            yield {**results(self.env.step_batch(action)), "release": copied(self.env.release(sends))}

    def episode(self) -> list[dict[str, Any]]:
        """Plays an episode, and returns copies of the results of its reset and of each round."""
        return [results(self.env.reset_batch(self.seeds)), *self.rounds()]


def _merged(chosen: Array, differs: Array, old: Any, new: Any) -> Any:
    """Returns actions, arrays or mappings of arrays, that are ``new`` for chosen agents and ``old`` for all others."""
    if isinstance(old, dict):
        return {name: _merged(chosen, differs, old[name], new[name]) for name in old}
    which = chosen if old.ndim == 2 else chosen[..., np.newaxis] & differs
    return np.where(spread(which, old), new, old).astype(old.dtype)


def inside_of(layer: Layer, env: FederatedEnv) -> FederatedEnv:
    """Returns the part of a stack inside of a layer, or the stack as it is if it has none.

    A transport releases data by itself; inside of it, tests can decide who releases.
    """
    outer = find_layer(env, layer)
    return env if outer is None else outer.env


def random_choices(space: spaces.Space[Any], rows: tuple[int, int], rounds: int = HORIZON) -> list[Any]:
    """Draws an element of a space for each agent and round.

    Args:
        space: One agent's space.
        rows: Numbers of replicas and agents, the leading axes.
        rounds: Number of rounds.

    Returns:
        One batch of elements for each round, with leading axes ``(replicas, agents)``; always the same draws.
    """
    batched = batch_space(space, rounds * rows[0] * rows[1])
    batched.seed(0)
    drawn = mapped(lambda array: np.reshape(array, (rounds, *rows, *np.shape(array)[1:])), batched.sample())
    return [taken(drawn, t) for t in range(rounds)]


def copied(tree: Any) -> Any:
    """Returns nested mappings with a copy of every array."""
    return mapped(np.array, tree)


def results(result: BatchReset | BatchStep) -> dict[str, Any]:
    """Returns a copy of every array that a reset or a step has returned, by the result's names.

    The names are those of :class:`BatchReset` or :class:`BatchStep`, such as ``"observation"``.
    """
    return copied(result._asdict())


def by_agent(env: FederatedEnv, action: Any) -> dict[str, Any]:
    """Returns the first replica's actions, keyed by agent."""
    return {agent: taken(action, (0, j)) for j, agent in enumerate(env.possible_agents)}


def require_in_space(
    what: str, found: Any, space: spaces.Space[Any], rows: tuple[int, int], any_width: bool = False
) -> None:
    """Requires that every row of an array is an element of a space, and that dtype and shape are right.

    Args:
        what: Description of the array, for the message.
        found: The array; for a space ``Dict``, a mapping of arrays, which are required to have its names.
        space: Space of one row.
        rows: Numbers of replicas and agents, the leading axes.
        any_width: Whether to accept any dtype that NumPy casts to one of the same kind, as environments do for actions.
    """
    if isinstance(space, spaces.Dict):
        mapping = isinstance(found, Mapping)
        names = f"a mapping of {list(found)}" if mapping else repr(found)
        fits = mapping and found.keys() == space.keys()
        require(fits, f"{what} is {names}; a mapping of {list(space)} is required")
        for name, part in space.items():
            require_in_space(f"{what} {name!r}", found[name], part, rows, any_width)
        return
    dtype, shape = np.dtype(space.dtype), (*rows, *(space.shape or ()))
    fits = isinstance(found, np.ndarray) and found.shape == shape
    # Formatting arrays and spaces is slow, so messages are made for failures only.
    if not fits or not np.can_cast(found.dtype, dtype, "same_kind" if any_width else "no"):
        raise AssertionError(
            f"{what} is {getattr(found, 'dtype', type(found).__name__)} {np.shape(found)}"
            f"; {dtype} {shape}, as its space {space} says after (replicas, agents), is required"
        )
    # Only these spaces themselves are compared at once: a class derived from them may contain less.
    bounds = type(space) in (spaces.Box, spaces.Discrete, spaces.MultiDiscrete) and ends_of(space)
    if bounds and ((found >= bounds[0]) & (found <= bounds[1])).all():
        return
    for row in np.ndindex(rows):
        if not space.contains(np.asarray(found[row], dtype)):
            raise AssertionError(f"{what} is {found[row]} in row {row}; an element of {space} is required")
