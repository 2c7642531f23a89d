"""The agents that a policy plays while another learns, and when they send."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.streams import row_seeds

_MAKE_SCHEDULE = "fedbandit_envs.wrappers.transport.schedule:make_schedule"


class Peer(Protocol):
    """What peers must be able to do: the policy protocol of the baselines' floor, as seen from here."""

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Prepares for an episode."""

    def act(self, observation: Arrays) -> Any:
        """Chooses one action a row."""


PEERS_SEND: Mapping[str, Any] = {"name": "doubling", "start": 1, "stop": None}
"""When peers ask to send by default: in rounds 1, 2, 4, 8, ...

So they are heard, whoever learns to send has something to learn from, and what was last heard of them is never less
than half of what they know; at log2(rounds) messages each, as in the protocols that pay for every message.
"""


class Peers:
    """All agents but those that learn, played by one policy.

    Where agents choose when to send, a policy that chooses (its actions are mappings with ``send``) is left its choice;
    for one that does not, a rule fixed in advance asks.
    """

    def __init__(self, federation: FederatedEnv, policy: str | Peer, send: Any = None) -> None:
        """Takes a policy for peers.

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
            seeds: One a replica.
            observation: The first, of all agents, ``(replicas, agents, ...)``.
        """
        self._policy.reset(self._federation.policy_spaces, row_seeds(seeds, self._federation.max_num_agents))
        self.see(observation)

    def see(self, observation: Arrays) -> None:
        """Shows peers what all agents observe."""
        self._seen = observation
        self._chosen: Any = None

    def act(self) -> Any:
        """Returns what the policy does in the coming round, for all agents ``(replicas, agents, ...)``.

        It is asked once a round, so that a refused choice of the learner's does not count for its peers.
        """
        if self._chosen is None:
            action = self._policy.act(self._seen)
            if self._schedule is not None and not isinstance(action, Mapping):
                everyone = np.ones(action.shape[:2], np.bool_)
                coming = int(self._seen["round"].flat[0]) + 1
                action = {"action": action, "send": self._schedule.senders(coming, everyone)}
            self._chosen = action
        return self._chosen
