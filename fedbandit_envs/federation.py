"""The two faces of a federated environment.

All computing happens once, in the *array face* (:meth:`FederatedEnv.reset_batch`,
:meth:`FederatedEnv.step_batch`, :meth:`FederatedEnv.release`), whose arrays lead with the axes
``(replicas, agents)``. The *PettingZoo face* (dicts keyed by agent, one replica) is derived from it here and
nowhere else.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo import ParallelEnv

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.claim import Claim
from fedbandit_envs.door import Door
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.spaces import ActionFormat, Spaces
from fedbandit_envs.stacking import ByAgent, stacked
from fedbandit_envs.streams import EpisodeSeeds


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


class FederatedEnv(ParallelEnv[str, Arrays, Array], ABC):
    """A federation of agents that face bandit problems of one kind, in many independent replicas.

    Problems subclass :class:`~fedbandit_envs.problem.Problem` and what stands around them :class:`FederatedWrapper`.
    Arrays that the array face returns are read-only views of buffers, which hold until the next call: whoever writes
    into one gets a ``ValueError`` instead of moving costs, contexts, statistics or regret. The PettingZoo face hands
    out copies, which agents may write to and share with nobody. This stops accidents, not intent: whoever must be safe
    from a policy's intent puts a process between it and the environment.

    Attributes:
        possible_agents: Names of all agents, ``agent_0 ...``.
        single_observation_space: Observation space of every agent.
        single_action_space: Action space of every agent.
        single_release_space: Space of what one agent releases without noise (:meth:`release`).
        max_cycles: The horizon: rounds until truncation; may be set between episodes.
        action_formats: The action formats offered to learning agents, by name.
    """

    metadata: dict[str, Any]
    single_observation_space: spaces.Dict
    single_action_space: spaces.Space[Any]
    single_release_space: spaces.Dict
    max_cycles: int
    action_formats: Mapping[str, ActionFormat]

    # How many wrappers are inside of this one, and the door that they share.
    _height: int
    _door: Door

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, hook in (("release", "_release"), ("privacy", "permit or _release")):
            if name in vars(cls):
                raise TypeError(f"{cls.__name__} overrides {name}, which is final; override {hook} instead")

    def __init__(self) -> None:
        """Prepares the PettingZoo face; problems and wrappers set spaces and agents."""
        self._episode_seeds = EpisodeSeeds()
        self._by_agent = ByAgent()

    @abstractmethod
    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed; the number of seeds is the number of replicas.

        Args:
            seeds: Non-negative integers; replica i depends on ``seeds[i]`` alone.

        Returns:
            The first observations, and information of the names that :meth:`step_batch` uses, all zero.

        Raises:
            ValueError: There is no seed, or a negative one.
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
    def summon(self, acting: Array) -> None:
        """Says who acts in the round after this one; called before ``reset_batch``, in the first round.

        An episode in which nobody is summoned before its first round is one in which all act, always. For those who do
        not act nothing is played or drawn: reward and information are 0, statistics stand still, and an agent's luck
        is that of the rounds in which it acts.

        Args:
            acting: Who acts, bool ``(replicas, agents)``.
        """

    def release(self, senders: Array) -> Arrays:
        """Lets data leave agents: the only door there is, and the same for all environments and wrappers.

        What leaves is counted. Layers say in :meth:`_release` what it is and in :meth:`permit` whose may leave.

        Args:
            senders: Who sends, bool ``(replicas, agents)``.

        Returns:
            What each sender's sufficient statistic has grown by since it last sent, zero for the silent;
            arrays by name with leading axes ``(replicas, agents)``.

        Raises:
            ValueError: ``senders`` has the wrong shape.
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        sends = self.permit(self._checked_senders(senders))
        released = self._release(sends)
        self._door.count(self._height, sends)
        return released

    def _checked_senders(self, senders: Array) -> Array:
        if self._door.episode is None:
            raise ResetNeeded("release() was called before reset()")
        sends = np.array(senders, np.bool_)
        if sends.shape != self._door.shape:
            raise ValueError(
                f"senders has shape {sends.shape}; (replicas, agents) = {self._door.shape} is required"
            )
        return sends

    @abstractmethod
    def _release(self, sends: Array) -> Arrays:
        """Takes from agents what :meth:`release` lets out; ``sends`` is right and permitted.

        Layers call that of the layer inside of them. Nothing is counted here, since nothing leaves.
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

    def largest_reward(self) -> Array | None:
        """Returns the largest size that the reward of a round can have; known from reset on, constant over an episode.

        Returns:
            Numbers >= 0, float64 ``(replicas, agents)``; None where nobody has said.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        return None

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

        The claim is that of the whole stack, at whichever level of it one asks. Without a privatizer it is all or
        nothing: silence is perfectly private, raw data not at all. That holds under any adjacency; the first that the
        environment names stands for all.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if self._door.episode is None:
            raise ResetNeeded("privacy() was called before reset()")
        return self._door.claim()

    @abstractmethod
    def hidden(self) -> Arrays:
        """Returns what the agents do not know, by name, with leading axes ``(replicas, agents)``."""

    @property
    @abstractmethod
    def hidden_space(self) -> spaces.Dict:
        """One agent's space of :meth:`hidden`."""

    def told_apart(self) -> Arrays | None:
        """Returns what the last release says to each receiver beyond what it says to all; None where it says no more.

        Where messages go from agent to agent, a transport adds it to them. It holds no data.

        Returns:
            Arrays by name, ``(replicas, senders, receivers, ...)``, zero for the silent.
        """
        return None

    @property
    def groups(self) -> Mapping[str, Sequence[int]]:
        """Agents whose results are to be told apart, by the group's name: numbers of agents, at least one a group."""
        return {}

    @property
    def totals(self) -> Arrays:
        """What the episode adds up to so far besides reward and information, by name, for reports: problems say what.

        Arrays lead with ``(replicas, agents)``.
        """
        return {}

    @property
    def public(self) -> Mapping[str, Any]:
        """What is known to all agents from the start, besides spaces and numbers: nothing, unless a problem says so."""
        return {}

    @property
    def policy_spaces(self) -> Spaces:
        """What policies are told of this environment."""
        return Spaces(
            observation=self.single_observation_space,
            action=self.single_action_space,
            horizon=self.max_cycles,
            release=self.single_release_space,
            agents=self.max_num_agents,
            public=self.public,
            action_formats=self.action_formats,
            features=getattr(self, "features", None),
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
        return self._observations_by_agent(observation), ByAgent.infos(info, self.possible_agents)

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
        observation, reward, truncated, info = self.step_batch(
            stacked(actions, self.single_action_space, self.possible_agents)
        )
        over = bool(truncated[0, 0])
        names = self.possible_agents
        if over:
            self.agents = []
        return (
            self._observations_by_agent(observation),
            dict(zip(names, reward[0].tolist(), strict=True)),
            dict.fromkeys(names, False),
            dict.fromkeys(names, over),
            ByAgent.infos(info, names),
        )

    def _observations_by_agent(self, observation: Arrays) -> dict[str, Arrays]:
        return self._by_agent.observations(observation, self.possible_agents)
