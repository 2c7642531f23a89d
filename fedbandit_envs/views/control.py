"""Outside control over a federation's agents: over one learner among peers, or over all of them.

Every Gymnasium view stands on this class: it takes the learner's rows out of the array face and lets a policy
play the others.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from fedbandit_envs.checks import require_choice
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.federation import Array, Arrays, FederatedEnv, Spaces
from fedbandit_envs.streams import row_seeds


class Peer(Protocol):
    """What peers must be able to do: the policy protocol of the baselines' floor, as seen from here."""

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Prepares for an episode."""

    def act(self, observation: Arrays) -> Any:
        """Chooses one action a row; where agents choose when to send, a plain array sends nothing."""


class Control:
    """One replica's worth of spaces, and array steps for many replicas.

    Attributes:
        observation_space: The federation's own for a single learner; batched over agents for joint control.
        action_space: The action format's for a single learner. For joint control a ``MultiDiscrete`` or
            ``Discrete`` is laid flat into one ``MultiDiscrete``, agent by agent; a ``Box`` gains an agents' axis.
            Where agents choose when to send, a ``Dict`` of ``action`` and ``send``.
    """

    def __init__(
        self, federation: FederatedEnv, *, joint: bool, peers: str | Peer | None, action_format: str | None
    ) -> None:
        """Chooses who is controlled, and how.

        Args:
            federation: The environment, with its wrappers.
            joint: Control all agents if true, else ``agent_0`` among peers.
            peers: The other agents' policy, or the entry point ``"module:Class"`` that makes it. Unused when joint.
            action_format: One of the federation's ``action_formats``; None for the first of them, the environment's
                own actions.

        Raises:
            ValueError: ``action_format`` is unknown, peers are missing, or control is joint and agents choose when to
                send.
        """
        formats = federation.action_formats
        if action_format is None:
            action_format = next(iter(formats))
        require_choice("action_format", action_format, formats)
        if joint and isinstance(formats[action_format].space, spaces.Dict):
            raise ValueError(
                "joint is True, but agents choose when to send, which does not fit one flat space; "
                "joint=False or a schedule that is fixed in advance is required"
            )
        self.federation = federation
        self._format = formats[action_format]
        self._joint = joint
        self._peers: Peer | None = None
        if not joint:
            if peers is None:
                raise ValueError(
                    "peers is None; a policy or its entry point is required unless joint is True"
                )
            self._peers = resolve(peers)() if isinstance(peers, str) else peers
        observation_space: spaces.Space[Any] = federation.single_observation_space
        self.observation_space = (
            batch_space(observation_space, federation.max_num_agents) if joint else observation_space
        )
        self.action_space = (
            _joint_space(self._format.space, federation.max_num_agents) if joint else self._format.space
        )

    def reset(self, seeds: Sequence[int]) -> tuple[Arrays, Arrays]:
        """Starts one episode a seed.

        Returns:
            Observation and info, arrays with leading axis ``replicas`` (then ``agents`` when joint), all copies.
        """
        reset = self.federation.reset_batch(seeds)
        self._seen = reset.observation
        self._others: Any = None
        if self._peers is not None:
            self._peers.reset(self.federation.policy_spaces, row_seeds(seeds, self.federation.max_num_agents))
        return self._own(reset.observation), self._own(reset.info)

    def step(self, choice: Any) -> tuple[Arrays, Array, bool, Arrays]:
        """Plays one round.

        Args:
            choice: Elements of ``action_space`` with leading axis ``replicas``; for a ``Dict`` a mapping of them.

        Returns:
            Observation, reward ``(replicas,)`` (summed over agents when joint), whether the horizon is reached
            (for all replicas at once), and info.

        Raises:
            ValueError: The choice has the wrong shape or a forbidden value.
            TypeError: The choice has the wrong dtype, or is no mapping where one is required.
        """
        replicas = next(iter(self._seen.values())).shape[0]
        rows = _rows("action", choice, self.action_space, self._format.space, replicas)
        seen = self._seen if self._joint else {name: array[:, :1] for name, array in self._seen.items()}
        action = self._format.to_action(rows, seen)
        if self._peers is not None:
            if self._others is None:
                # Asked once a round, so that a refused choice of the learner's does not count for its peers.
                self._others = self._peers.act(self._seen)
            action = _merged(self._others, action)
        step = self.federation.step_batch(action)
        self._seen, self._others = step.observation, None
        reward = step.reward.sum(axis=1) if self._joint else step.reward[:, 0].copy()
        return self._own(step.observation), reward, bool(step.truncated.flat[0]), self._own(step.info)

    def _own(self, arrays: Arrays) -> Arrays:
        return {name: (array if self._joint else array[:, 0]).copy() for name, array in arrays.items()}


def _joint_space(space: spaces.Space[Any], num_agents: int) -> spaces.Space[Any]:
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(np.tile(space.nvec, num_agents), dtype=space.dtype.type)
    return batch_space(space, num_agents)


def _rows(
    name: str, choice: Any, space: spaces.Space[Any], row_space: spaces.Space[Any], replicas: int
) -> Any:
    """Gives a choice, element of ``space``, the leading axes ``(replicas, agents)``, or refuses its shape."""
    if isinstance(space, spaces.Dict) and isinstance(row_space, spaces.Dict):
        if not isinstance(choice, Mapping) or choice.keys() != space.keys():
            raise TypeError(f"{name} is {choice!r}; a mapping of {list(space)} is required")
        return {
            key: _rows(f"{name}[{key!r}]", choice[key], space[key], row_space[key], replicas) for key in space
        }
    array = np.asarray(choice)
    if array.shape != (replicas, *(space.shape or ())):
        raise ValueError(f"{name} has shape {array.shape[1:]}; {space.shape} is required")
    return array.reshape(replicas, -1, *(row_space.shape or ()))


def _merged(others: Any, own: Any) -> Any:
    """Puts the learner's rows in the place of the first agent's among those that peers chose for all."""
    if isinstance(own, Mapping):
        if not isinstance(others, Mapping):
            others = {"action": others, "send": np.zeros(others.shape[:2], np.bool_)}
        return {name: _merged(others[name], own[name]) for name in own}
    # Promoted, so that a bad value of the learner's reaches the environment's checks as it is.
    merged = others.astype(np.promote_types(others.dtype, own.dtype))
    merged[:, :1] = own
    return merged
