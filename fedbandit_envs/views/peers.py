"""Peers: the agents that a fixed policy plays while another agent learns, and when they send."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.randomness.streams import row_seeds

_MAKE_SCHEDULE = "fedbandit_envs.wrappers.transport.schedule:make_schedule"


class Peer(Protocol):
    """The policy protocol of :class:`fedbandit_envs.baselines.policy.Policy`, repeated for this lower floor."""

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode."""

    def act(self, observation: Arrays) -> Any:
        """Chooses one action a row."""


PEERS_SEND: Mapping[str, Any] = {"name": "doubling", "start": 1, "stop": None}
"""The schedule by which peers send by default: in rounds 1, 2, 4, 8, ...

The learner then always has at least half of the data of its peers, at a cost of log2(rounds) messages each, as in
protocols that count every message.
"""


class Peers:
    """The agents that do not learn, played by one policy.

    Where agents choose when to send, a policy may choose (its actions are then mappings with ``send``); for other
    policies a schedule that is fixed in advance decides.
    """

    def __init__(self, federation: FederatedEnv, policy: str | Peer, send: Any = None) -> None:
        """Takes the peers' policy.

        Args:
            federation: The environment, with its wrappers.
            policy: The policy, or the entry point ``"module:Class"`` that makes it.
            send: When peers ask to send whose policy does not choose: a schedule fixed in advance, by name or mapping,
                see :mod:`fedbandit_envs.wrappers.transport.schedule`; ``"silent"`` for never. None for
                :data:`PEERS_SEND`.

        Raises:
            TypeError: ``send`` is no schedule.
            ValueError: It is not fixed in advance, or agents of this environment do not choose when to send.
        """
        chosen = isinstance(federation.single_action_space, spaces.Dict)
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
        """Starts one episode a seed.

        Args:
            seeds: Seed of each replica.
            observation: The first observations of all agents, ``(replicas, agents, ...)``.
        """
        self._policy.reset(self._federation.policy_spec, row_seeds(seeds, self._federation.max_num_agents))
        self.see(observation)

    def see(self, observation: Arrays) -> None:
        """Takes the observations of all agents after a round."""
        self._observation = observation
        self._chosen: Any = None

    def act(self) -> Any:
        """Returns the policy's actions in the next round, for all agents ``(replicas, agents, ...)``.

        The policy is called once a round, even if an invalid choice of the learner is repeated.
        """
        if self._chosen is None:
            action = self._policy.act(self._observation)
            if self._schedule is not None and not isinstance(action, Mapping):
                everyone = np.ones(action.shape[:2], np.bool_)
                coming = int(self._observation["round"].flat[0]) + 1
                action = {"action": action, "send": self._schedule.senders(coming, everyone)}
            self._chosen = action
        return self._chosen
