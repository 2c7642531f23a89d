"""Samples for attacks: the agents of federations that all live through the same history behind a privatizer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.neighbours import Neighbours
from fedbandit_envs.problem import Problem
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer

Privatize = Callable[[FederatedEnv], Privatizer]
"""Wraps the environment it is given in a privatizer."""


@dataclass(frozen=True)
class Life:
    """What all agents of a federation live through, in windows of one round each that end with a release.

    Attributes:
        problem: What environments are made of.
        settings: Their arguments, all but the number of agents.
        actions: What an agent does in each window, an element of the action space.
    """

    problem: type[Problem]
    settings: Mapping[str, Any]
    actions: Sequence[Array]

    def federation(self, agents: int) -> Problem:
        """Makes a federation of so many agents."""
        return self.problem(**self.settings, num_agents=agents)

    def play(self, env: FederatedEnv, seed: int) -> Iterator[Arrays]:
        """Plays an episode, and yields what leaves in each window: arrays by name ``(agents, ...)``."""
        env.reset_batch([seed])
        everyone = np.ones((1, env.max_num_agents), np.bool_)
        for action in self.actions:
            env.step_batch(np.broadcast_to(action, (*everyone.shape, *action.shape)))
            yield {name: array[0] for name, array in env.release(everyone).items()}

    def clear(self, layout: spaces.Dict) -> Array:
        """Returns what one agent would release without noise, ``(releases, values)``, laid out like this."""
        return np.concatenate([laid_out(arrays, layout) for arrays in self.play(self.federation(1), 0)])


def lives(
    problem: type[Problem], pair: Neighbours, releases: int, altered: int | None, horizon: int
) -> list[Life]:
    """Returns what happens before, and what happens after: the histories' own in altered windows, idleness in others.

    Args:
        problem: What environments are made of.
        pair: The histories.
        releases: Number of windows.
        altered: In how many of them, from the first on, the histories differ; None for all.
        horizon: Rounds of an episode.
    """
    differing = releases if altered is None else altered
    return [
        Life(
            problem,
            {**history.settings, "max_cycles": horizon},
            [history.action if z < differing else pair.idle for z in range(releases)],
        )
        for history in (pair.before, pair.after)
    ]


# Agents of a federation: more have no room in fast memory. Values that they release: these may be held, 256 MB.
_AGENTS, _HELD = 10_000, 1 << 25


class Samples:
    """Samples of what is released in a life.

    Attributes:
        env: The federation whose agents they are, one episode after the other.
    """

    def __init__(self, privatize: Privatize, life: Life, samples: int, seed: Sequence[int]) -> None:
        """Sets a federation up.

        Args:
            privatize: Wraps it.
            life: What its agents live through.
            samples: The least number of samples, some more may come.
            seed: Of all that is random.
        """
        size = sum(array.size for arrays in life.play(life.federation(1), 0) for array in arrays.values())
        self._episodes = ceil(samples / min(_AGENTS, max(_HELD // size, 1)))
        self._life = life
        self._seed = seed
        self.env = privatize(life.federation(ceil(samples / self._episodes)))

    def draw(self) -> Iterator[Iterator[Array]]:
        """Yields for each episode what leaves in each window, ``(agents, values)``."""
        for seed in np.random.SeedSequence(self._seed).generate_state(self._episodes, np.uint64).tolist():
            yield (
                laid_out(arrays, self.env.single_release_space) for arrays in self._life.play(self.env, seed)
            )

    def all(self) -> Array:
        """Returns all that leaves, as of one episode, ``(releases, samples, values)``."""
        return np.concatenate([np.stack(list(windows)) for windows in self.draw()], axis=1)


def laid_out(arrays: Arrays, layout: spaces.Dict) -> Array:
    """Lays all values of a release side by side, ``(rows, values)``; arrays that are not there are 0."""
    rows = len(next(iter(arrays.values())))
    parts = [arrays.get(name, np.zeros((rows, *(space.shape or ())))) for name, space in layout.items()]
    return np.concatenate([part.reshape(rows, -1) for part in parts], axis=1, dtype=np.float64)


class Seen(NamedTuple):
    """What an attacker looks at, of all that samples have released.

    Attributes:
        sums: Weighted sums of all values, ``(samples,)``.
        differing: The values that differ between the histories, ``(samples, values)``.
    """

    sums: Array
    differing: Array


def look(episodes: Iterable[Iterable[Array]], weights: Array, differs: Array) -> Seen:
    """Looks at samples.

    Args:
        episodes: See :meth:`Samples.draw`.
        weights: ``(releases, values)``.
        differs: Which values differ, bool ``(releases, values)``.
    """
    sums, differing = [], []
    for windows in episodes:
        parts = [(values @ w, values[:, d]) for values, w, d in zip(windows, weights, differs, strict=True)]
        sums.append(sum(part[0] for part in parts))
        differing.append(np.concatenate([part[1] for part in parts], axis=1))
    return Seen(np.concatenate(sums), np.concatenate(differing))
