"""Control of one learning agent among peers, or of all agents jointly, for the Gymnasium views."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.stack import Stack, build, checked
from fedbandit_envs.views.peers import Peer, Peers
from fedbandit_envs.views.rows import Observation, Rows


class Control:
    """One controller of a federation, for one agent among peers or for all agents, in one or many replicas.

    Attributes:
        observation_space: Observation space of one agent (:class:`~fedbandit_envs.views.rows.Rows`); for joint control
            batched over agents.
        action_space: For one agent the space of its action format. For joint control a ``MultiDiscrete`` or
            ``Discrete`` becomes one ``MultiDiscrete`` with the agents' entries one after another; a ``Box`` gains an
            agents' axis. Where agents write messages or choose when to send, a ``Dict`` with the
            entries ``message`` and ``send``, or a flat space.
    """

    def __init__(
        self,
        federation: FederatedEnv,
        *,
        batched: bool,
        joint: bool,
        peers: str | Peer | None,
        action_format: str | None,
        features: bool = False,
        peers_send: Any = None,
    ) -> None:
        """Chooses which agents are controlled, and how.

        Args:
            federation: The environment, with its wrappers.
            batched: Whether arrays have a leading axis of replicas; otherwise there is one replica, without an axis.
            joint: Whether all agents are controlled; otherwise ``agent_0`` among peers.
            peers: The other agents' policy, or the entry point ``"module:Class"`` that makes it. Unused when joint.
            action_format: One of the federation's ``action_formats``; None for the first of them, the environment's
                own actions.
            features: Whether observations are features instead of raw observations.
            peers_send: The schedule by which peers send, see :class:`~fedbandit_envs.views.peers.Peers`. Unused when
                joint.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: ``action_format`` is unknown, peers are missing, the problem has no features, or control is
                joint and the format's space is a ``Dict``.
        """
        if not joint and peers is None:
            raise ValueError("peers is None; a policy or its entry point is required unless joint is True")
        others = None if joint or peers is None else Peers(federation, peers, peers_send)
        rows = Rows(federation, action_format=action_format, features=features, peers=others)
        if joint and isinstance(rows.action_space, spaces.Dict):
            flat = [
                name
                for name, each in federation.action_formats.items()
                if not isinstance(each.space, spaces.Dict)
            ]
            raise ValueError(
                f"joint is True, but actions are mappings of {list(rows.action_space)}, which do not fit one flat "
                f"space; joint=False, one of the action formats {flat}, or a stack in which agents choose actions only "
                "(a schedule that is fixed in advance, messages of a reporter) is required"
            )
        self.federation = federation
        self._rows = rows
        self._joint = joint
        self._batched = batched
        # The index that takes the returned part of arrays (replicas, agents, ...), and how many axes it removes.
        self._part = (*((slice(None),) if batched else (0,)), *(() if joint else (0,)))
        self._axes = (not batched) + (not joint)
        self.observation_space, self.action_space = rows.observation_space, rows.action_space
        if joint:
            self.observation_space = batch_space(rows.observation_space, len(rows.agents))
            self.action_space = _joint_space(rows.action_space, len(rows.agents))

    def reset(self, seeds: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        """Starts one episode for each seed.

        Returns:
            Copies of observation and info, with leading axes ``replicas`` (when batched) and ``agents`` (when joint).
        """
        self._leading = (len(seeds),) if self._batched else ()
        observation, info = self._rows.reset(seeds)
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
        """Returns copies of the parts of arrays that belong to the controlled agents."""
        part, axes = self._part, self._axes
        if not isinstance(arrays, dict):
            return arrays[part].copy()
        return {
            name: array[part].copy() if array.ndim > axes else array[part] for name, array in arrays.items()
        }


def make_control(
    batched: bool,
    federation: str,
    joint: bool = False,
    peers: str | Peer | None = None,
    action_format: str | None = None,
    features: bool = False,
    peers_send: Any = None,
    max_cycles: int = 1000,
    stack: Stack = (),
    preset_stack: Stack = (),
    **federation_kwargs: Any,
) -> Control:
    """Builds a federation with its wrappers, and a :class:`Control` of its learning agents.

    Args:
        batched: Whether arrays have a leading axis of replicas; otherwise there is one replica, without an axis.
        federation: Entry point ``"module:Class"`` of the federation.
        joint: Whether all agents are controlled; otherwise ``agent_0`` among peers.
        peers: The other agents' policy, or its entry point; registered ids have a default. Unused when joint.
        action_format: Name of an action format, see the federation's page; None for the environment's own actions.
        features: Whether observations are a flat box of features in [-1, 1] instead of the raw ones, see the problem's
            subclass of :class:`~fedbandit_envs.core.features.Features`.
        peers_send: The rounds in which peers send if their policy does not choose: a schedule fixed in advance, by name
            or mapping; None for :data:`~fedbandit_envs.views.peers.PEERS_SEND`. Only where agents choose when to send;
            unused when joint.
        max_cycles: The horizon: number of rounds until truncation.
        stack: Wrappers around the federation from the inside out, as pairs of an entry point and keyword arguments.
            They determine, for example, who sends to whom, when, and with how much noise.
        preset_stack: Wrappers of a registered id, inside of those in ``stack``.
        **federation_kwargs: Arguments of the federation's class.

    Raises:
        TypeError: The stack is malformed, or a parameter has the wrong type.
        ValueError: A parameter is out of its range.
    """
    env = build(federation, (*preset_stack, *checked(stack)), max_cycles=max_cycles, **federation_kwargs)
    return Control(
        env,
        batched=batched,
        joint=joint,
        peers=peers,
        action_format=action_format,
        features=features,
        peers_send=peers_send,
    )


def _joint_space(space: spaces.Space[Any], num_agents: int) -> spaces.Space[Any]:
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(np.tile(space.nvec, num_agents), dtype=space.dtype.type)
    return batch_space(space, num_agents)


def _in_rows(
    name: str, choice: Any, space: spaces.Space[Any], row_space: spaces.Space[Any], leading: tuple[int, ...]
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
