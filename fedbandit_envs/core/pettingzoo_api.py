"""The PettingZoo API (dicts keyed by agent, one replica), built on methods that take and return arrays."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo import ParallelEnv

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.buffers import Parts
from fedbandit_envs.randomness.streams import EpisodeSeeds


class PettingZooApi(ParallelEnv[str, Any, Any]):
    """A PettingZoo ``ParallelEnv`` whose ``reset`` and ``step`` convert between arrays and dicts keyed by agent.

    Subclasses set ``possible_agents`` and the spaces of one agent, and implement :meth:`_reset_arrays` and
    :meth:`_step_arrays`.

    Attributes:
        single_observation_space: Observation space of every agent.
        single_action_space: Action space of every agent.
    """

    single_observation_space: spaces.Space[Any]
    single_action_space: spaces.Space[Any]

    def __init__(self) -> None:
        """Prepares the environment; no seed has been given yet."""
        self._episode_seeds = EpisodeSeeds()
        self._agent_rows = Parts(_rows)

    @abstractmethod
    def _reset_arrays(self, seeds: Sequence[int]) -> tuple[Any, Mapping[str, Array]]:
        """Starts one episode per seed and returns observation and info, leading axes ``(replicas, agents)``."""

    @abstractmethod
    def _step_arrays(self, action: Any) -> tuple[Any, Array, Array, Mapping[str, Array]]:
        """Plays one round and returns observation, reward, truncated and info, leading axes ``(replicas, agents)``."""

    def observation_space(self, agent: str) -> Any:
        """Returns the observation space of ``agent``, the same object at each call."""
        return self.single_observation_space

    def action_space(self, agent: str) -> Any:
        """Returns the action space of ``agent``, the same object at each call."""
        return self.single_action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Starts an episode of one replica.

        Args:
            seed: Fixes this episode and those of later resets without a seed.
            options: Part of PettingZoo's API; ignored.

        Returns:
            Observations and infos by agent.
        """
        observation, info = self._reset_arrays([self._episode_seeds.next(seed)])
        self.agents = list(self.possible_agents)
        return self._observations(observation), self._infos(info)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Plays one round of one replica.

        Args:
            actions: One action for each agent.

        Returns:
            Observations, rewards, terminations (never), truncations and infos by agent; empty after the last round.

        Raises:
            ValueError: Agents are missing or unknown, or an action has the wrong shape or a forbidden value.
            TypeError: An action has the wrong dtype.
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if not hasattr(self, "agents"):
            raise ResetNeeded("step() was called before reset()")
        if not self.agents:
            return {}, {}, {}, {}, {}
        names = self.possible_agents
        observation, reward, truncated, info = self._step_arrays(
            stacked(actions, self.single_action_space, names)
        )
        over = bool(truncated[0, 0])
        if over:
            self.agents = []
        return (
            self._observations(observation),
            dict(zip(names, reward[0].tolist(), strict=True)),
            dict.fromkeys(names, False),
            dict.fromkeys(names, over),
            self._infos(info),
        )

    def _observations(self, arrays: Any) -> dict[str, Any]:
        """Returns a copy of each agent's observation, by agent; writing to a copy changes nothing else."""
        if not isinstance(arrays, Mapping):
            return dict(zip(self.possible_agents, map(np.ndarray.copy, arrays[0]), strict=True))
        return {
            agent: {name: row.copy() for name, row in own.items()}
            for agent, own in zip(self.possible_agents, self._agent_rows.of(arrays), strict=True)
        }

    def _infos(self, arrays: Mapping[str, Array]) -> dict[str, dict[str, Any]]:
        """Returns each agent's information by name, as Python's own numbers."""
        columns = {name: array[0].tolist() for name, array in arrays.items()}
        return {
            agent: {name: own[j] for name, own in columns.items()}
            for j, agent in enumerate(self.possible_agents)
        }


def _rows(arrays: Mapping[str, Array]) -> list[dict[str, Array]]:
    """Returns for each agent a dict of views of its part of the arrays, in replica 0."""
    agents = next(iter(arrays.values())).shape[1]
    # With the ellipsis, a single number is a view, too; plain indexing would copy it.
    return [{name: array[0, j, ...] for name, array in arrays.items()} for j in range(agents)]


def stacked(actions: Mapping[str, Any], space: spaces.Space[Any], agents: Sequence[str]) -> Any:
    """Returns actions keyed by agent as an array with one replica, ``(1, agents, ...)``, or as a dict of such arrays.

    Raises:
        ValueError: Agents are missing or unknown, or an action has the wrong shape.
    """
    if len(actions) != len(agents) or not all(map(actions.__contains__, agents)):
        unknown = sorted(set(actions) - set(agents))
        missing = [agent for agent in agents if agent not in actions]
        raise ValueError(f"actions: one action an agent is needed; missing {missing}, unknown {unknown}")
    return _stack_rows([actions[agent] for agent in agents], space, agents, "")


def _stack_rows(rows: list[Any], space: spaces.Space[Any], agents: Sequence[str], place: str) -> Any:
    """Stacks one element of a space for each agent, and elements of ``Dict`` spaces entry by entry.

    ``place`` is the path of the entry in nested ``Dict`` spaces, for errors.
    """
    if isinstance(space, spaces.Dict):
        for agent, row in zip(agents, rows, strict=True):
            if not isinstance(row, Mapping) or row.keys() != space.keys():
                raise ValueError(
                    f"actions[{agent!r}]{place} is {row!r}; a mapping of {list(space)} is required"
                )
        return {
            name: _stack_rows([row[name] for row in rows], part, agents, f"{place}[{name!r}]")
            for name, part in space.items()
        }
    try:
        whole = np.array([rows])
    except ValueError:
        # The actions have different shapes. The loop below raises an error that names the first wrong one.
        whole = np.empty(0)
    if whole.shape != (1, len(agents), *(space.shape or ())):
        for agent, row in zip(agents, rows, strict=True):
            if np.shape(row) != space.shape:
                raise ValueError(
                    f"actions[{agent!r}]{place} has shape {np.shape(row)}; {space.shape} is required"
                )
    return whole
