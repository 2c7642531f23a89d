"""Who controls which agents: rows of learning agents, their peers, and one controller, for the views of all libraries.

The views of Gymnasium (single and vector), PettingZoo and Stable-Baselines3 translate observations and actions here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_flag
from fedbandit_envs.basics.entry_points import handed_down, resolve
from fedbandit_envs.core.actions import add_entry, require_action_entries
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.policy_spec import Features, Policy
from fedbandit_envs.core.wrapper import Stack, build, checked, find_layer
from fedbandit_envs.randomness.streams import row_seeds

PEERS_SEND: Mapping[str, Any] = {"name": "doubling", "start": 1, "stop": None}
"""The schedule by which peers send by default: in rounds 1, 2, 4, 8, ...

The learner then always has at least half of the data of its peers, while each peer sends only about log2(rounds)
messages.
"""


class Peers:
    """The agents that do not learn and act by one fixed policy.

    Where agents choose when to send, the policy may choose (its actions are then mappings with ``send``); for policies
    that do not, a schedule fixed in advance decides when the peers send.
    """

    def __init__(
        self, federation: FederatedEnv, policy: str | Policy | None = None, send: Any = None
    ) -> None:
        """Takes the peers' policy, and their schedule of messages.

        Args:
            federation: The environment, with its wrappers.
            policy: The policy, or the entry point ``"module:Class"`` that makes it; None for the problem's default.
            send: The rounds in which peers send if their policy does not choose: a schedule fixed in advance, by name
                or mapping, see :mod:`fedbandit_envs.wrappers.transport.schedule`; ``"silent"`` for never. None for
                :data:`PEERS_SEND`.

        Raises:
            TypeError: ``send`` is no schedule.
            ValueError: ``send`` is not fixed in advance, or agents of this environment do not choose when to send; or
                the problem has no default policy.
        """
        self._federation = federation
        if policy is None:
            package, problem, *_ = f"{type(federation.unwrapped).__module__}.".split(".")
            make = handed_down("peers")(problem) if package == "fedbandit_envs" else None
            if make is None:
                raise ValueError(
                    "peers is None; a policy or its entry point is required unless joint is True"
                )
            policy = make()
        self._policy: Policy = resolve(policy)() if isinstance(policy, str) else policy
        self._schedule: Any = None
        if federation.policy_spec.chooses_sending:
            transport: Any = find_layer(federation, "transport")
            self._schedule = transport.make_schedule(PEERS_SEND if send is None else send)
        if send is not None and not (self._schedule and self._schedule.fixed_in_advance):
            raise ValueError(
                f"peers_send is {send!r}; a schedule fixed in advance is required, or None unless agents of this "
                "environment choose when to send"
            )

    def reset(self, seeds: Sequence[int], observation: Arrays) -> None:
        """Starts one episode for each seed.

        Args:
            seeds: Seed of each replica.
            observation: The first observations of all agents, ``(replicas, agents, ...)``.
        """
        self._policy.reset(self._federation.policy_spec, row_seeds(seeds, self._federation.max_num_agents))
        self.see(observation)

    def see(self, observation: Arrays) -> None:
        """Takes the observations of all agents after a round, from which the next actions are chosen."""
        self._observation = observation
        self._chosen: Any = None

    def act(self) -> Any:
        """Returns the policy's actions in the next round, for all agents ``(replicas, agents, ...)``.

        The policy is called once a round, even if an invalid choice of the learner is repeated.
        """
        if self._chosen is None:
            action = self._policy.act(self._observation)
            if self._schedule is not None and not (isinstance(action, Mapping) and "send" in action):
                everyone = np.ones(self._observation["round"].shape[:2], np.bool_)
                coming = int(self._observation["round"].flat[0]) + 1
                action = add_entry(action, "send", self._schedule.senders(coming, everyone))
            space = self._federation.single_action_space
            if isinstance(space, spaces.Dict):
                reason = "peers act by their policy, which must choose all of them"
                require_action_entries(action, list(space), reason)
            self._chosen = action
        return self._chosen


Observation = Arrays | Array
"""Arrays by name, or one array of features; leading axes ``(replicas, agents)``."""


class Rows:
    """The learning agents of a federation, in many replicas: all agents, or ``agent_0`` among peers.

    Except for features, the arrays that are returned are views of the federation's buffers, which the next call
    overwrites.

    Attributes:
        federation: The environment, with its wrappers.
        agents: Names of the agents that learn, the federation's first ones.
        observation_space: Observation space of one row: the federation's own ``Dict``, or a flat float32 ``Box`` in
            [-1, 1] of features.
        action_space: Action space of one row, given by the action format.
        masked: Whether the action format has action masks, from a method ``allowed``.
        features: The object that computes features; None if rows get raw observations.
    """

    observation_space: spaces.Space

    def __init__(
        self,
        federation: FederatedEnv,
        *,
        action_format: str | None = None,
        features: bool = False,
        peers: Peers | None = None,
    ) -> None:
        """Chooses the agents that learn, their observations and their action format.

        Args:
            federation: The environment, with its wrappers.
            action_format: One of the federation's ``action_formats``; None for the first of them, the environment's
                own actions.
            features: Whether agents get features (:class:`~fedbandit_envs.core.policy_spec.Features`) instead of raw
                observations.
            peers: The players of all agents except ``agent_0``; None if all agents learn.

        Raises:
            TypeError: ``features`` is no bool.
            ValueError: ``action_format`` is unknown, or the problem has no features.
        """
        formats = federation.action_formats
        action_format = next(iter(formats)) if action_format is None else action_format
        require_choice("action_format", action_format, formats)
        require_flag("features", features)
        self.federation = federation
        self._format = formats[action_format]
        self._peers = peers
        self.agents = federation.possible_agents[: None if peers is None else 1]
        self.features = _features_of(federation) if features else None
        self.observation_space = self.features.space if self.features else federation.single_observation_space
        self.action_space = self._format.space
        self.masked = hasattr(self._format, "allowed")

    def reset(self, seeds: Sequence[int]) -> tuple[Observation, Arrays]:
        """Starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`.

        Args:
            seeds: Non-negative integers, one for each replica.

        Returns:
            First observations and information, ``(replicas, agents, ...)``. Features are those of the agents that
            learn; all else is of all agents, of which those that learn are the first.
        """
        reset = self.federation.reset_batch(seeds)
        if self._peers is not None:
            self._peers.reset(seeds, reset.observation)
        self._observation = reset.observation
        if self.features is not None:
            self.features = _features_of(self.federation)
            self.features.reset((len(seeds), len(self.agents)))
        return self._shown(), reset.info

    def step(self, choice: Any) -> tuple[Observation, Array, Array, Arrays]:
        """Plays one round.

        Args:
            choice: Elements of ``action_space`` for the agents that learn, with leading axes ``(replicas, agents)``;
                for a ``Dict`` a mapping of them. Views must have checked the shapes.

        Returns:
            Observations, rewards, whether the horizon is reached, and information, for the same agents as in
            :meth:`reset`.

        Raises:
            TypeError: The choice has the wrong dtype.
            ValueError: The choice has a forbidden value. The state does not change.
        """
        action = self._format.to_action(choice, self._learners())
        if self._peers is not None:
            action = _merged(self._peers.act(), action)
        step = self.federation.step_batch(action)
        if self._peers is not None:
            self._peers.see(step.observation)
        self._observation = step.observation
        return self._shown(), step.reward, step.truncated, step.info

    def allowed(self) -> Array:
        """Returns which choices are allowed now, bool ``(replicas, agents, entries)``.

        A ``Discrete`` space has an entry for each choice; a ``MultiDiscrete`` has an entry for each choice of its first
        component, then for each choice of its second, and so on.

        Raises:
            AttributeError: The action format has no masks, from a method ``allowed``.
        """
        # Only some formats have masks, so that the protocol of formats does not; `masked` says whether this one does.
        return self._format.allowed(self._observation)  # type: ignore[attr-defined]

    def _learners(self) -> Arrays:
        """Returns the last observations of the agents that learn."""
        if self._peers is None:
            return self._observation
        return {name: array[:, :1] for name, array in self._observation.items()}

    def _shown(self) -> Observation:
        return self._observation if self.features is None else self.features.see(self._learners())


def flat(arrays: Observation) -> Any:
    """Merges the replicas' and agents' axes of an array, or of a dict of arrays, into one axis ``rows``."""
    if isinstance(arrays, Mapping):
        return {name: flat(array) for name, array in arrays.items()}
    return arrays.reshape(-1, *arrays.shape[2:])


def row_of(arrays: Observation, place: int) -> Any:
    """Returns the entry at index ``place`` of the leading axis of an array, or of each array in a dict."""
    if isinstance(arrays, Mapping):
        return {name: array[place] for name, array in arrays.items()}
    return arrays[place]


def _features_of(federation: FederatedEnv) -> Features:
    """Returns a new object that computes the problem's features; raises a ``ValueError`` if the problem has none."""
    kind: type[Features] | None = getattr(federation, "features", None)
    if kind is None:
        raise ValueError(
            f"features is True, but {federation.metadata['name']} has none; features=False, or a class of "
            "fedbandit_envs.core.policy_spec.Features as the problem's attribute `features`, is required"
        )
    return kind(federation.policy_spec)


def _merged(others: Any, own: Any) -> Any:
    """Returns the peers' actions with the first agent's replaced by the learner's."""
    if isinstance(own, Mapping):
        return {name: _merged(others[name], own[name]) for name in own}
    # The dtype is promoted to hold both kinds of actions. Otherwise an invalid action of the learner, such as 0.5,
    # could be rounded to a valid one before the environment checks it.
    merged = others.astype(np.promote_types(others.dtype, own.dtype))
    merged[:, :1] = own
    return merged


class Control:
    """One controller of a federation, for one agent among peers or for all agents, in one or many replicas.

    Attributes:
        observation_space: Observation space of one agent (:class:`Rows`); for joint control
            batched over agents.
        action_space: For one agent the space of its action format. For joint control a ``MultiDiscrete`` or
            ``Discrete`` becomes one ``MultiDiscrete`` with the agents' entries one after another; a ``Box`` gains an
            agents' axis. Where agents write messages or choose when to send, a ``Dict`` with the
            entries ``message`` and ``send``, or a flat space.
    """

    def __init__(
        self,
        batched: bool,
        federation: str,
        stack: Stack = (),
        preset_stack: Stack = (),
        joint: bool = False,
        peers: str | Policy | None = None,
        action_format: str | None = None,
        features: bool = False,
        peers_send: Any = None,
        **settings: Any,
    ) -> None:
        """Makes the federation, and chooses which agents are controlled, and how.

        Args:
            batched: Whether arrays have a leading axis of replicas; otherwise there is one replica, without an axis.
            federation: Entry point of the environment's class.
            stack: Wrappers from the innermost to the outermost, see :func:`~fedbandit_envs.core.wrapper.build`.
            preset_stack: Wrappers inside of ``stack``, which belong to the environment's id.
            joint: Whether all agents are controlled; otherwise ``agent_0`` among peers.
            peers: The other agents' policy, or the entry point ``"module:Class"`` that makes it; None for the problem's
                default. Unused when joint.
            action_format: One of the federation's ``action_formats``; None for the first of them, the environment's
                own actions.
            features: Whether observations are features instead of raw observations.
            peers_send: The schedule by which peers send, see :class:`Peers`. Unused when joint.
            **settings: Arguments of the environment's class.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, ``action_format`` is unknown, peers are missing, the problem
                has no features, or control is joint and the format's space is a ``Dict``.
        """
        env = build(federation, (*preset_stack, *checked(stack)), **settings)
        others = None if joint else Peers(env, peers, peers_send)
        rows = Rows(env, action_format=action_format, features=features, peers=others)
        if joint and isinstance(rows.action_space, spaces.Dict):
            raise ValueError(
                f"joint is True, but actions are mappings of {list(rows.action_space)}; joint=False, an action_format "
                "with a flat space, or a stack in which agents choose actions only is required"
            )
        self.federation = env
        self._rows = rows
        self._joint = joint
        self._batched = batched
        # The index that takes the returned part of arrays (replicas, agents, ...), and how many axes it removes.
        self._part = (*((slice(None),) if batched else (0,)), *(() if joint else (0,)))
        self.observation_space, self.action_space = rows.observation_space, rows.action_space
        if joint:
            self.observation_space = batch_space(rows.observation_space, len(rows.agents))
            self.action_space = batch_space(rows.action_space, len(rows.agents))
            if isinstance(rows.action_space, spaces.MultiDiscrete):
                of_all = np.tile(rows.action_space.nvec, len(rows.agents))
                self.action_space = spaces.MultiDiscrete(of_all, dtype=rows.action_space.dtype.type)

    def reset(self, seeds: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        """Starts one episode for each seed.

        Returns:
            Copies of observation and info, with leading axes ``replicas`` (when batched) and ``agents`` (when joint).
        """
        self._leading = (len(seeds),) if self._batched else ()
        observation, info = self._rows.reset(seeds)
        if self._joint:
            self.federation._ledger.unclaimable_reason = "one controller acts on the data of all agents"
        return self._own(observation), self._own(info)

    def step(self, choice: Any) -> tuple[Any, Array, bool, dict[str, Any]]:
        """Plays one round.

        Args:
            choice: Elements of ``action_space``, when batched with leading axis ``replicas``; for a ``Dict`` a mapping
                of them.

        Returns:
            Observation, reward ``(replicas,)`` (summed over agents when joint; the next call may overwrite it), whether
            the horizon is reached (in all replicas at once), and info.

        Raises:
            ValueError: The choice has the wrong shape or a forbidden value.
            TypeError: The choice has the wrong dtype, or is no mapping where one is required.
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if not hasattr(self, "_leading"):
            raise ResetNeeded("step() was called before reset()")
        rows = _in_rows("action", choice, self.action_space, self._rows.action_space, self._leading)
        observation, reward, truncated, info = self._rows.step(rows)
        paid = reward.sum(axis=1) if self._joint else reward[:, 0]
        return self._own(observation), paid, bool(truncated[0, 0]), self._own(info)

    def _own(self, arrays: Observation) -> Any:
        """Returns copies of the parts of arrays that belong to the controlled agents; single numbers are Python's."""
        if not isinstance(arrays, dict):
            return arrays[self._part].copy()
        own = {name: array[self._part] for name, array in arrays.items()}
        if "inbox_mask" in arrays:
            own |= concealed(arrays, self._part)
        return {name: array.copy() if array.ndim else array.item() for name, array in own.items()}


def _in_rows(
    name: str, choice: Any, space: spaces.Space, row_space: spaces.Space, leading: tuple[int, ...]
) -> Any:
    """Checks a controller's choice and returns it with the leading axes ``(replicas, agents)``.

    Args:
        name: Name of the choice, for errors.
        choice: Elements of ``space``, with the axes ``leading`` before those of the space.
        space: Action space of the controller.
        row_space: Action space of one agent.
        leading: ``(replicas,)``, or ``()`` for a single replica without an axis.
    """
    if isinstance(space, spaces.Dict) and isinstance(row_space, spaces.Dict):
        if not isinstance(choice, Mapping) or choice.keys() != space.keys():
            raise TypeError(f"{name} is {choice!r}; a mapping of {list(space)} is required")
        return {
            key: _in_rows(f"{name}[{key!r}]", choice[key], space[key], row_space[key], leading)
            for key in space
        }
    array = np.asarray(choice)
    shape = (*leading, *(space.shape or ()))
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; {shape} is required")
    return array.reshape(*(leading or (1,)), -1, *(row_space.shape or ()))
