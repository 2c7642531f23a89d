"""The two faces of a federated environment.

All computing happens once, in the *array face* (:meth:`FederatedEnv.reset_batch`,
:meth:`FederatedEnv.step_batch`, :meth:`FederatedEnv.release`), whose arrays lead with the axes
``(replicas, agents)``. The *PettingZoo face* (dicts keyed by agent, one replica) is derived from it here and
nowhere else.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo import ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper

from fedbandit_envs.claim import Claim
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.streams import EpisodeSeeds

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


class Spaces(NamedTuple):
    """What a policy is told of an environment before it acts.

    Attributes:
        observation: One agent's observation space; batches add the leading axes ``(replicas, agents)``.
        action: One agent's action space; batches add the same axes.
        horizon: Number of rounds of an episode, public to all.
        release: Space of what one agent releases; where noise has public bounds, they are here.
    """

    observation: spaces.Dict
    action: spaces.Space[Any]
    horizon: int
    release: spaces.Dict


class BatchReset(NamedTuple):
    """What :meth:`FederatedEnv.reset_batch` returns; arrays lead with ``(replicas, agents)``."""

    observation: Arrays
    info: Arrays


class BatchStep(NamedTuple):
    """What :meth:`FederatedEnv.step_batch` returns; arrays lead with ``(replicas, agents)``.

    Attributes:
        observation: Arrays by name, as in the observation space.
        reward: Realised reward of the round, float64 ``(replicas, agents)``.
        truncated: Whether the horizon is reached, bool ``(replicas, agents)``. Nothing ever terminates.
        info: ``regret`` (in expectation over outcomes) and the environment's own entries.
    """

    observation: Arrays
    reward: Array
    truncated: Array
    info: Arrays


class ActionFormat(Protocol):
    """Another way for a learning agent to say what it does, turned into the environment's own action."""

    space: spaces.Space[Any]

    def to_action(self, choice: Any, observation: Mapping[str, Array]) -> Any:
        """Translates choices.

        Args:
            choice: Elements of ``space`` with leading axes ``(replicas, agents)``; a mapping of them for a ``Dict``.
            observation: The observations those agents see, same leading axes.

        Returns:
            Actions of the environment, same leading axes, likewise.
        """


class FederatedEnv(ParallelEnv[str, Arrays, Array], ABC):
    """A federation of agents that face bandit problems of one kind, in many independent replicas.

    Subclasses set the attributes below and implement the array face. Arrays that the array face returns are
    buffers: they hold until the next call and must not be written to. The PettingZoo face copies.

    Attributes:
        possible_agents: Names of all agents, ``agent_0 ...``.
        single_observation_space: Observation space of every agent.
        single_action_space: Action space of every agent.
        single_release_space: Space of what one agent releases without noise (:meth:`release`).
        max_cycles: Rounds until truncation; may be set between episodes.
        action_formats: The action formats offered to learning agents, by name.
    """

    metadata: dict[str, Any]
    single_observation_space: spaces.Dict
    single_action_space: spaces.Space[Any]
    single_release_space: spaces.Dict
    max_cycles: int
    action_formats: Mapping[str, ActionFormat]

    # Whether raw data has left this episode; an environment that keeps no count can claim no privacy.
    _has_released: bool = True

    def __init__(self) -> None:
        self._episode_seeds = EpisodeSeeds()

    @abstractmethod
    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed; the number of seeds is the number of replicas.

        Args:
            seeds: Non-negative integers; replica i depends on ``seeds[i]`` alone.
        """

    @abstractmethod
    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas.

        Args:
            action: One action an agent, leading axes ``(replicas, agents)``.

        Raises:
            TypeError: The action has the wrong dtype.
            ValueError: The action has the wrong shape or a forbidden value. State is untouched.
            gymnasium.error.ResetNeeded: No episode is running.
        """

    @abstractmethod
    def release(self, senders: Array) -> Arrays:
        """Lets data leave agents: the only door there is.

        Args:
            senders: Who sends, bool ``(replicas, agents)``.

        Returns:
            What each sender's sufficient statistic has grown by since it last sent, zero for the silent;
            arrays by name with leading axes ``(replicas, agents)``.
        """

    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """Says how much :meth:`release` can betray; known from reset on and constant over an episode.

        Returns:
            The scale of each value that ``release`` returns, and how neighbouring histories show in one release,
            by adjacency.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """

    def permit(self, senders: Array) -> Array:
        """Says who of those who want to send may: everyone, unless a wrapper limits them.

        Args:
            senders: Who wants to send, bool ``(replicas, agents)``.

        Returns:
            Who may, bool ``(replicas, agents)``: a subset of ``senders``.
        """
        return np.asarray(senders, np.bool_)

    def privacy(self) -> Claim:
        """Claims what privacy the releases of this episode had, for the agent that has spent most.

        Without a privatizer it is all or nothing: silence is perfectly private, raw data not at all. That holds under
        any adjacency; the first that the environment names stands for all.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        adjacency = next(iter(self.sensitivity().changes))
        if not self._has_released:
            return Claim(0.0, 0.0, adjacency, "basic", "nothing has been released")
        return Claim(np.inf, 0.0, adjacency, "basic", "released without noise")

    @abstractmethod
    def hidden(self) -> Arrays:
        """Returns what the agents do not know, by name, with leading axes ``(replicas, agents)``."""

    @property
    @abstractmethod
    def hidden_space(self) -> spaces.Dict:
        """One agent's space of :meth:`hidden`."""

    @property
    def policy_spaces(self) -> Spaces:
        """What policies are told of this environment."""
        return Spaces(
            self.single_observation_space,
            self.single_action_space,
            self.max_cycles,
            self.single_release_space,
        )

    def observation_space(self, agent: str) -> spaces.Dict:
        """Returns the observation space of ``agent``, the same object at each call."""
        return self.single_observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Returns the action space of ``agent``, the same object at each call."""
        return self.single_action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Arrays], dict[str, dict[str, Any]]]:
        """Starts an episode of one replica.

        Args:
            seed: Fixes this episode and those of later unseeded resets.
            options: Accepted for the API's sake; no environment here has any.

        Returns:
            Observations and infos by agent.
        """
        observation, info = self.reset_batch([self._episode_seeds.next(seed)])
        self.agents = list(self.possible_agents)
        return self._observations_by_agent(observation), self._infos_by_agent(info)

    def step(
        self, actions: dict[str, Array]
    ) -> tuple[
        dict[str, Arrays], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Plays one round of one replica; arguments and results are keyed by agent.

        Raises:
            ValueError: Agents are missing or unknown, or an action has the wrong shape or a forbidden value.
            TypeError: An action has the wrong dtype.
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if not hasattr(self, "agents"):
            raise ResetNeeded("step() was called before reset()")
        if not self.agents:
            return {}, {}, {}, {}, {}
        observation, reward, truncated, info = self.step_batch(self._stack(actions))
        over = bool(truncated[0, 0])
        names = self.agents
        if over:
            self.agents = []
        return (
            self._observations_by_agent(observation),
            dict(zip(names, reward[0].tolist(), strict=True)),
            dict.fromkeys(names, False),
            dict.fromkeys(names, over),
            self._infos_by_agent(info),
        )

    def _stack(self, actions: Mapping[str, Any]) -> Any:
        """Stacks actions by agent into one replica's rows, shape ``(1, agents, ...)``."""
        unknown = sorted(set(actions) - set(self.possible_agents))
        missing = [agent for agent in self.possible_agents if agent not in actions]
        if unknown or missing:
            raise ValueError(f"actions: one action an agent is needed; missing {missing}, unknown {unknown}")
        rows = {f"actions[{agent!r}]": actions[agent] for agent in self.possible_agents}
        return _stack_rows(rows, self.single_action_space)

    def _observations_by_agent(self, observation: Arrays) -> dict[str, Arrays]:
        rows = {name: array[0].copy() for name, array in observation.items()}
        return {
            agent: {name: array[j] for name, array in rows.items()}
            for j, agent in enumerate(self.possible_agents)
        }

    def _infos_by_agent(self, info: Arrays) -> dict[str, dict[str, Any]]:
        rows = {name: array[0].tolist() for name, array in info.items()}
        return {
            agent: {name: row[j] for name, row in rows.items()}
            for j, agent in enumerate(self.possible_agents)
        }


def _stack_rows(rows: Mapping[str, Any], space: spaces.Space[Any]) -> Any:
    """Stacks elements of a space, named for the sake of errors; ``Dict`` spaces entry by entry."""
    if isinstance(space, spaces.Dict):
        for where, row in rows.items():
            if not isinstance(row, Mapping) or row.keys() != space.keys():
                raise ValueError(f"{where} is {row!r}; a mapping of {list(space)} is required")
        return {
            name: _stack_rows({f"{where}[{name!r}]": row[name] for where, row in rows.items()}, part)
            for name, part in space.items()
        }
    arrays = {where: np.asarray(row) for where, row in rows.items()}
    for where, array in arrays.items():
        if array.shape != space.shape:
            raise ValueError(f"{where} has shape {array.shape}; {space.shape} is required")
    return np.stack(list(arrays.values()))[np.newaxis]


class FederatedWrapper(FederatedEnv, BaseParallelWrapper[str, Arrays, Array]):
    """Passes the array face through, to be overridden in part; the PettingZoo face follows from it.

    Attributes that a wrapper does not set are those of the wrapped environment.
    """

    env: FederatedEnv

    def __init__(self, env: FederatedEnv) -> None:
        """Wraps ``env``.

        Raises:
            TypeError: ``env`` is not a :class:`FederatedEnv`.
        """
        if not isinstance(env, FederatedEnv):
            raise TypeError(f"env is a {type(env).__name__}; a FederatedEnv is required")
        FederatedEnv.__init__(self)
        self.env = env

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed; see :meth:`FederatedEnv.reset_batch`."""
        return self.env.reset_batch(seeds)

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`."""
        return self.env.step_batch(action)

    def release(self, senders: Array) -> Arrays:
        """Lets data leave agents; see :meth:`FederatedEnv.release`."""
        return self.env.release(senders)

    def sensitivity(self) -> Sensitivity:
        """Says how much a release can betray; see :meth:`FederatedEnv.sensitivity`."""
        return self.env.sensitivity()

    def permit(self, senders: Array) -> Array:
        """Says who of those who want to send may; see :meth:`FederatedEnv.permit`."""
        return self.env.permit(senders)

    def privacy(self) -> Claim:
        """Claims what privacy the releases had; see :meth:`FederatedEnv.privacy`."""
        return self.env.privacy()

    def hidden(self) -> Arrays:
        """Returns what the agents do not know; see :meth:`FederatedEnv.hidden`."""
        return self.env.hidden()

    @property
    def hidden_space(self) -> spaces.Dict:
        """One agent's space of :meth:`hidden`."""
        return self.env.hidden_space
