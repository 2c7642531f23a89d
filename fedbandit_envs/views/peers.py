"""Peers: the agents that act by a fixed policy while one agent learns, and the schedule by which they send messages."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.action_formats import add_entry, require_action_entries
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.randomness.streams import row_seeds

_MAKE_SCHEDULE = "fedbandit_envs.wrappers.transport.schedule:make_schedule"


class Peer(Protocol):
    """A policy that plays the peers, with the methods of :class:`fedbandit_envs.baselines.policy.Policy`.

    The protocol is repeated here since this package must not import ``baselines``.
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode."""

    def act(self, observation: Arrays) -> Any:
        """Returns one action for each row (agent of a replica)."""


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

    def __init__(self, federation: FederatedEnv, policy: str | Peer, send: Any = None) -> None:
        """Takes the peers' policy, and their schedule of messages.

        Args:
            federation: The environment, with its wrappers.
            policy: The policy, or the entry point ``"module:Class"`` that makes it.
            send: The rounds in which peers send if their policy does not choose: a schedule fixed in advance, by name
                or mapping, see :mod:`fedbandit_envs.wrappers.transport.schedule`; ``"silent"`` for never. None for
                :data:`PEERS_SEND`.

        Raises:
            TypeError: ``send`` is no schedule.
            ValueError: ``send`` is not fixed in advance, or agents of this environment do not choose when to send.
        """
        chosen = federation.policy_spec.chooses_sending
        if send is not None and not chosen:
            raise ValueError(
                f"peers_send is {send!r}, but agents of this environment do not choose when to send; None, or a "
                "channel whose schedule asks agents, is required"
            )
        self._federation = federation
        self._policy: Peer = resolve(policy)() if isinstance(policy, str) else policy
        self._schedule = resolve(_MAKE_SCHEDULE)(PEERS_SEND if send is None else send) if chosen else None
        if self._schedule is not None and not self._schedule.fixed_in_advance:
            raise ValueError(
                f"peers_send is {send!r}, which asks agents when they send; a schedule fixed in advance is required"
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
                require_action_entries(
                    action, list(space), "peers act by their policy, which must choose all of them"
                )
            self._chosen = action
        return self._chosen
