"""The base class of federated environments: its batch API, and the PettingZoo API on top of it.

All computing happens in the *batch API* (:meth:`FederatedEnv.reset_batch`, :meth:`FederatedEnv.step_batch`,
:meth:`FederatedEnv.release`), whose arrays lead with the axes ``(replicas, agents)``. The PettingZoo API (dicts keyed
by agent, one replica) converts between arrays and dicts.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial, wraps
from inspect import getattr_static
from types import MethodType
from typing import Any, NamedTuple, final
from weakref import WeakSet

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo import ParallelEnv

from fedbandit_envs.basics.arrays import Array, Arrays, Parts
from fedbandit_envs.basics.entry_points import handed_down
from fedbandit_envs.basics.html import html_table
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.ledger import ReleaseLedger
from fedbandit_envs.core.policy_spec import ActionFormat, PolicySpec
from fedbandit_envs.core.privacy import Claim, Sensitivity
from fedbandit_envs.randomness.streams import EpisodeSeeds


class PettingZooApi(ParallelEnv[str, Any, Any]):
    """A PettingZoo ``ParallelEnv`` whose ``reset`` and ``step`` convert between arrays and dicts keyed by agent.

    Subclasses set ``possible_agents`` and the spaces of one agent, and implement :meth:`reset_batch` and
    :meth:`step_batch`.

    Attributes:
        single_observation_space: Observation space of every agent.
        single_action_space: Action space of every agent.
    """

    single_observation_space: spaces.Space
    single_action_space: spaces.Space

    def __init__(self) -> None:
        """Prepares the environment; no seed has been given yet."""
        self._episode_seeds = EpisodeSeeds()
        self._agent_rows = Parts(_rows)
        self._agent_spaces: dict[tuple[str, int], tuple[spaces.Space, spaces.Space]] = {}

    @abstractmethod
    def reset_batch(self, seeds: Sequence[int]) -> tuple[Any, Mapping[str, Array]]:
        """Starts one episode per seed and returns observation and info, leading axes ``(replicas, agents)``."""

    @abstractmethod
    def step_batch(self, action: Any) -> tuple[Any, Array, Array, Mapping[str, Array]]:
        """Plays one round and returns observation, reward, truncated and info, leading axes ``(replicas, agents)``."""

    def observation_space(self, agent: str) -> Any:
        """Returns the observation space of ``agent``, the same object at each call."""
        return self._own_space(agent, self.single_observation_space)

    def action_space(self, agent: str) -> Any:
        """Returns the action space of ``agent``, the same object at each call."""
        return self._own_space(agent, self.single_action_space)

    def _own_space(self, agent: str, space: spaces.Space) -> spaces.Space:
        """Returns the agent's copy of a space, so that seeding one agent's space does not seed those of others."""
        if (agent, id(space)) not in self._agent_spaces:
            own = deepcopy(space)
            own.seed(None)
            self._agent_spaces[agent, id(space)] = space, own
        return self._agent_spaces[agent, id(space)][1]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Starts an episode of one replica.

        Args:
            seed: Fixes this episode and those of later resets without a seed.
            options: Part of PettingZoo's API, whose own tests give some; there are none.

        Returns:
            Observations and infos by agent.

        Warns:
            UserWarning: An option is given.
        """
        if options:
            warnings.warn(f"options is {options!r} and ignored: environments have no options", stacklevel=1)
        observation, info = self.reset_batch([self._episode_seeds.next(seed)])
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
        if actions.keys() != set(names):
            raise ValueError(f"actions are of {sorted(actions)}; one action for each of {names} is required")
        action = _stack_rows([actions[agent] for agent in names], self.single_action_space)
        observation, reward, truncated, info = self.step_batch(action)
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
        shown = concealed(arrays, 0)
        rows = zip(self.possible_agents, self._agent_rows.of(arrays), strict=True)
        copies = {
            agent: {name: row.copy() for name, row in own.items() if name not in shown} for agent, own in rows
        }
        for name, array in shown.items():
            for own, row in zip(copies.values(), array, strict=True):
                own[name] = row.copy()
        return copies

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


def _stack_rows(rows: list[Any], space: spaces.Space) -> Any:
    """Returns agents' actions as an array with one replica, ``(1, agents, ...)``, or as a dict of such arrays.

    Raises:
        ValueError: An action has the wrong shape, or is no mapping of the space's names.
    """
    if isinstance(space, spaces.Dict):
        if not all(isinstance(row, Mapping) and row.keys() == space.keys() for row in rows):
            raise ValueError(f"actions are {rows}; a mapping of {list(space)} is required of each agent")
        return {name: _stack_rows([row[name] for row in rows], part) for name, part in space.items()}
    whole = np.array([rows])
    if whole.shape[2:] != space.shape:
        raise ValueError(f"actions have shape {whole.shape[2:]}; {space.shape} is required")
    return whole


class BatchReset(NamedTuple):
    """The result of :meth:`FederatedEnv.reset_batch`; arrays lead with ``(replicas, agents)``.

    Attributes:
        observation: First observations by name.
        info: Information by name, all zero.
    """

    observation: Arrays
    info: Arrays


class BatchStep(NamedTuple):
    """The result of :meth:`FederatedEnv.step_batch`; arrays lead with ``(replicas, agents)``.

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


_FINAL = ("release", "privacy", "privacy_claims")
# The functions that `_counted` has made.
_COUNTED: WeakSet[Callable[[Any, Array], Arrays]] = WeakSet()


def _counted(release: Callable[[Any, Array], Arrays]) -> Callable[[Any, Array], Arrays]:
    """Returns a ``_release`` whose calls the release ledger counts, whoever makes them."""

    @wraps(release)
    def counted(env: "FederatedEnv", sends: Array) -> Arrays:
        return env._ledger.carry(env, partial(release, env), sends)

    _COUNTED.add(counted)
    return counted


class FederatedEnv(PettingZooApi, ABC):
    """A federation of agents, each of which faces a bandit problem of one kind, in many independent replicas.

    Problems subclass :class:`~fedbandit_envs.core.problem.Problem`, wrappers
    :class:`~fedbandit_envs.core.wrapper.FederatedWrapper`.

    The batch API returns read-only views of buffers, which are valid until the next call: writing into one raises a
    ``ValueError`` and cannot change costs, contexts, statistics or regret. The PettingZoo API returns copies, which
    agents may write to. This prevents accidents, not attacks: for protection from a malicious policy, run it in
    another process.

    Attributes:
        possible_agents: Names of all agents, ``agent_0 ...``.
        single_observation_space: Observation space of every agent.
        single_action_space: Action space of every agent.
        single_release_space: Space of what one agent releases without noise (:meth:`release`).
        max_cycles: The horizon: rounds until truncation; may be set between episodes.
        action_formats: The action formats offered to learning agents, by name.
        hidden_space: Space of one agent's hidden parameters, as :meth:`hidden` returns them.
        groups: Groups of agents whose results are reported separately: indices of agents by the group's name.
        public: Public constants of the problem by name, part of the :class:`.PolicySpec`; empty by default.
        message_bits: Bits of each number of an authored message, by array; empty where agents release statistics.
        asked_arrays: Names of those arrays of a message that agents fill only in replies to a server's questions. In
            replies all other arrays are 0. If no array is named, replies and other messages fill the same arrays.
    """

    metadata: dict[str, Any]
    single_observation_space: spaces.Dict
    single_action_space: spaces.Space
    single_release_space: spaces.Dict
    max_cycles: int
    action_formats: Mapping[str, ActionFormat]
    hidden_space: spaces.Dict
    groups: Mapping[str, Sequence[int]] = {}
    public: Mapping[str, Any] = {}
    message_bits: Mapping[str, int] = {}
    asked_arrays: frozenset[str] = frozenset()

    # _height: the number of wrappers and environments inside of this one (0 for a problem). _ledger: the record of all
    # releases, one object for the whole stack.
    _height: int
    _ledger: ReleaseLedger

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _FINAL:
            if getattr_static(cls, name) is not vars(FederatedEnv)[name]:
                raise TypeError(
                    f"{cls.__name__} overrides {name}, which is final; override _release or allowed_senders instead"
                )
        release = getattr_static(cls, "_release")
        if release not in _COUNTED:
            # The type checker takes every assignment to a class's method for a mistake; here it is meant.
            cls._release = _counted(release)  # type: ignore[assignment, method-assign]

    @abstractmethod
    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed; the number of seeds is the number of replicas.

        Args:
            seeds: Non-negative integers; replica i depends on ``seeds[i]`` alone.

        Returns:
            The first observations, and information with the same names as in :meth:`step_batch`, all zero.

        Raises:
            ValueError: There is no seed, or a negative one.
        """

    @abstractmethod
    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas.

        Args:
            action: One action for each agent, with leading axes ``(replicas, agents)``.

        Raises:
            TypeError: The action has the wrong dtype.
            ValueError: The action has the wrong shape or an invalid value. The state does not change.
            gymnasium.error.ResetNeeded: No episode is running.
        """

    @abstractmethod
    def set_active(self, active: Array) -> None:
        """Sets which agents act in the next round; before the first round it is called before ``reset_batch``.

        If it is not called before the first round, all agents act in all rounds of the episode. If an agent does not
        act in a round, its reward and information are 0, its statistics do not change, and no random numbers are drawn
        for it: it gets them in the next round in which it acts.

        Args:
            active: Whether each agent acts, bool ``(replicas, agents)``.
        """

    @abstractmethod
    def admit(self, agents: Array) -> None:
        """Activates further agents from the next round on; to be called between two rounds of an episode.

        Before the episode :meth:`set_active` must have said who acts in the first round.

        Args:
            agents: Which agents are activated, bool ``(replicas, agents)``; those that are active stay so in any case.
        """

    @final
    def release(self, senders: Array) -> Arrays:
        """Releases data of the senders; data leave agents in no other way. Final: subclasses cannot override it.

        The release ledger counts every release. Environments and wrappers define what is released in :meth:`_release`,
        and which agents may send in :meth:`allowed_senders`.

        Args:
            senders: Whether each agent sends, bool ``(replicas, agents)``.

        Returns:
            The growth of each sender's statistic since it last sent, zero for agents that do not send; arrays by name
            with leading axes ``(replicas, agents)``.

        Raises:
            ValueError: ``senders`` has the wrong shape, or a number other than 0 and 1.
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if self._ledger.episode is None:
            raise ResetNeeded("release() was called before reset()")
        sends = np.array(senders, np.bool_)
        if sends.shape != self._ledger.shape or np.count_nonzero(sends != senders):
            raise ValueError(
                f"senders is {senders!r}; bool of shape (replicas, agents) = {self._ledger.shape} is required"
            )
        return self._release(self.allowed_senders(sends))

    @abstractmethod
    def _release(self, sends: Array) -> Arrays:
        """Returns the data that :meth:`release` releases.

        Wrappers call this method of the environment inside of them, from their own. Where anything else calls it, the
        data have left there, past all wrappers outside, and the ledger counts them like a release.

        Args:
            sends: Whether each agent sends, bool ``(replicas, agents)``, checked and allowed.
        """

    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """Returns by how much one release can differ between neighbouring histories; constant over an episode.

        Returns:
            The scale of each number in a release; and for each adjacency, in units of these scales, bounds on the
            difference of one release between neighbouring histories.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """

    def largest_reward(self) -> Array | None:
        """Returns the largest absolute reward that each agent can get in a round; constant over an episode.

        Returns:
            Numbers >= 0, float64 ``(replicas, agents)``; None if the problem has no such bound.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        return None

    def allowed_senders(self, senders: Array) -> Array:
        """Returns which senders are allowed to send: all of them, unless a wrapper limits them.

        Args:
            senders: Whether each agent wants to send, bool ``(replicas, agents)``.

        Returns:
            Whether each agent may send, bool ``(replicas, agents)``; true for senders only.
        """
        return np.asarray(senders, np.bool_)

    @final
    def privacy(self) -> Claim:
        """Returns the privacy guarantee of this episode's releases, for the agent with the largest loss. Final.

        Every wrapper of a stack returns the same claim. Without a privatizer, epsilon is 0 if no agent has released
        anything and infinite otherwise, under any adjacency; the claim then names the environment's first adjacency. If
        the transport has a stage (a shuffler, a secure sum or a trusted server), the claim holds against fellow agents;
        :meth:`privacy_claims` returns those against all observers.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        first, *others = self.privacy_claims()
        fellow = next((claim for claim in others if claim.observer == "fellow"), first)
        return first if fellow.epsilon is None and fellow.trust != "server" else fellow

    @final
    def privacy_claims(self) -> list[Claim]:
        """Returns the privacy guarantees against every observer, those that trust least first. Final.

        Without a stage in the transport it is the claim of :meth:`privacy` alone, which trusts nobody. With a stage
        there is one claim for each observer, with the trust that it needs: infinite where the observer sees data
        without noise, and None, with the reason, where nothing can be said.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if self._ledger.episode is None:
            raise ResetNeeded("privacy() was called before reset()")
        return self._ledger.claims()

    def privacy_report(self, **measured: float) -> Any:
        """Returns a report on the privacy of this episode's releases, a :class:`.PrivacyReport`.

        Args:
            **measured: What was measured besides and belongs into it, such as ``audited_epsilon`` or ``regret``.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        return handed_down("privacy_report")(self, measured)

    @abstractmethod
    def hidden(self) -> Arrays:
        """Returns the parameters that agents do not know, by name, leading axes ``(replicas, agents)``."""

    @property
    def totals(self) -> Arrays:
        """Sums of the problem's own quantities over the episode so far, by name, such as pulls of each arm.

        Reports show them beside sums of rewards and regret. Arrays have leading axes ``(replicas, agents)``; their
        names depend on the problem. Empty by default.
        """
        return {}

    @property
    def policy_spec(self) -> PolicySpec:
        """The description of this environment that policies are given."""
        return PolicySpec(
            observation=self.single_observation_space,
            action=self.single_action_space,
            horizon=self.max_cycles,
            release=self.single_release_space,
            agents=self.max_num_agents,
            public=dict(self.public),
            action_formats=self.action_formats,
            features=getattr(self, "features", None),
        )

    def _repr_html_(self) -> str:
        """Returns the HTML table that notebooks show: size, horizon, spaces, and the wrappers from the outermost in."""
        spec, stack = self.policy_spec, [self]
        while isinstance(inner := getattr(stack[-1], "env", None), FederatedEnv):
            stack.append(inner)
        rows = [
            ("layers", " > ".join(type(one).__name__ for one in stack)),
            ("agents", spec.agents),
            ("rounds", spec.horizon),
            ("action", spec.action),
            *((f"observation: {name}", space) for name, space in spec.observation.items()),
        ]
        return html_table(str(self.metadata["name"]), rows)


def _final(name: str) -> property:
    """Returns a property that reads a method, or what was assigned first; other assignments raise an error."""
    method = vars(FederatedEnv).get(name)
    read = partial(MethodType, method) if method else lambda env: env.__dict__[name]

    def assign(env: FederatedEnv, value: Any) -> None:
        if method or name in env.__dict__:
            raise AttributeError(f"{name} is final; override _release or allowed_senders instead")
        env.__dict__[name] = value

    return property(read, assign, doc=method and method.__doc__)


# Unlike a ``__setattr__``, properties cost nothing where other attributes are assigned, as in every round.
for _name in (*_FINAL, "_ledger"):
    setattr(FederatedEnv, _name, _final(_name))
