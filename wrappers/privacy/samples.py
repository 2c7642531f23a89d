"""Samples for attacks: agents of federations that all have the same history behind a privatizer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer

Privatize = Callable[[FederatedEnv], Privatizer]
"""Wraps the environment it is given in a privatizer."""

# The largest number of agents simulated together, so that their arrays fit the cache, and the largest number of
# released values held in memory (256 MB).
_AGENTS, _HELD = 10_000, 1 << 25


@dataclass(frozen=True)
class AgentHistory:
    """A fixed sequence of actions that every agent of a federation plays, with a release after every round.

    Attributes:
        problem: Class of the environment.
        settings: Its arguments, all but the number of agents.
        actions: What an agent does in each window, an element of the action space.
    """

    problem: type[Problem]
    settings: Mapping[str, Any]
    actions: Sequence[Array]

    def federation(self, agents: int) -> Problem:
        """Returns a new environment with ``agents`` agents."""
        return self.problem(**self.settings, num_agents=agents)

    def releases(self, env: FederatedEnv, seed: int) -> Iterator[Arrays]:
        """Plays an episode of one replica, and yields what leaves in each window: arrays by name ``(agents, ...)``."""
        env.reset_batch([seed])
        everyone = np.ones((1, env.max_num_agents), np.bool_)
        for action in self.actions:
            env.step_batch(np.broadcast_to(action, (*everyone.shape, *action.shape)))
            yield {name: array[0] for name, array in env.release(everyone).items()}

    def without_noise(self, layout: spaces.Dict) -> Array:
        """Returns one agent's releases without noise, ``(releases, values)``; see :func:`side_by_side`."""
        return np.concatenate(
            [side_by_side(arrays, layout) for arrays in self.releases(self.federation(1), 0)]
        )


class Samples:
    """Releases of many agents that have the same history; each agent of each episode is one sample.

    Attributes:
        env: The privatized federation whose agents they are.
    """

    def __init__(
        self, privatize: Privatize, history: AgentHistory, samples: int, seed: Sequence[int]
    ) -> None:
        """Sets a federation up.

        Args:
            privatize: Wraps it.
            history: What its agents do.
            samples: The least number of samples, some more may come.
            seed: Of the episodes, and so of the noise.
        """
        first = history.releases(history.federation(1), 0)
        size = sum(array.size for arrays in first for array in arrays.values())
        self._episodes = ceil(samples / min(_AGENTS, max(_HELD // size, 1)))
        self._history = history
        self._seed = seed
        self.env = privatize(history.federation(ceil(samples / self._episodes)))

    def draw(self) -> Iterator[Iterator[Array]]:
        """Yields each episode's releases, one array ``(agents, values)`` for each window."""
        for seed in np.random.SeedSequence(self._seed).generate_state(self._episodes, np.uint64).tolist():
            windows = self._history.releases(self.env, seed)
            yield (side_by_side(arrays, self.env.single_release_space) for arrays in windows)

    def all(self) -> Array:
        """Returns all that leaves, as of one episode, ``(releases, samples, values)``."""
        return np.concatenate([np.stack(list(windows)) for windows in self.draw()], axis=1)


def side_by_side(arrays: Arrays, layout: spaces.Dict) -> Array:
    """Returns all values of a release, ``(rows, values)``, in the order of a release space; missing arrays are 0."""
    rows = len(next(iter(arrays.values())))
    parts = [arrays.get(name, np.zeros((rows, *(space.shape or ())))) for name, space in layout.items()]
    return np.concatenate([part.reshape(rows, -1) for part in parts], axis=1, dtype=np.float64)


class ObservedReleases(NamedTuple):
    """The attacker's statistics of the sampled releases.

    Attributes:
        sums: Weighted sums of all values, ``(samples,)``.
        differing: The values that differ between the histories, ``(samples, values)``.
    """

    sums: Array
    differing: Array


def observe(episodes: Iterable[Iterable[Array]], weights: Array, differs: Array) -> ObservedReleases:
    """Returns the attacker's statistics of the sampled releases.

    Args:
        episodes: See :meth:`Samples.draw`.
        weights: ``(releases, values)``.
        differs: Whether each value differs between the histories, bool ``(releases, values)``.
    """
    sums, differing = [], []
    for windows in episodes:
        parts = [(values @ w, values[:, d]) for values, w, d in zip(windows, weights, differs, strict=True)]
        sums.append(sum(part[0] for part in parts))
        differing.append(np.concatenate([part[1] for part in parts], axis=1))
    return ObservedReleases(np.concatenate(sums), np.concatenate(differing))
