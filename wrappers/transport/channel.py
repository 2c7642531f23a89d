"""The channel: who hears whom, when, how late and how reliably."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.claim import Claim
from fedbandit_envs.federation import Array, Arrays, BatchReset, BatchStep, FederatedEnv, FederatedWrapper
from fedbandit_envs.wrappers.transport.inbox import add_arrivals, inbox_spaces
from fedbandit_envs.wrappers.transport.network import Network
from fedbandit_envs.wrappers.transport.schedule import Schedule, make_schedule
from fedbandit_envs.wrappers.transport.sending import Sending
from fedbandit_envs.wrappers.transport.topology import Topology

HEADER_BYTES = 16
"""Bytes of a message besides its numbers: sender (4), round in which it was sent (8) and hops left (4)."""

BYTES_PER_NUMBER = 8


class Channel(FederatedWrapper):
    """Sends what agents release to other agents' inboxes.

    After each round of the environment the schedule says who wants to send. Those whom the environment
    permits release what their statistic has grown by, one message each, which floods the topology: whoever
    sees a message for the first time passes it on to all who hear it, except to whom it has just been heard
    from. Messages are numbered (by sender and round), so that nobody counts one twice.

    Observations gain, for each array ``name`` that the environment releases, with its shape ``(...)``:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `inbox_{name}` | (senders, ...) | float64 | what arrived this round, by sender; to be added up |
    | `inbox_mask` | (senders,) | bool | from whom something arrived |
    | `sent` | (1,) | bool | with ``echo`` only: whether the agent's own message is among them |

    Senders are all agents, in their order. Nobody hears from itself, but with ``echo``. Where the mask is false
    entries are 0.

    With a schedule that is not fixed in advance, actions become ``Dict({"action": <the environment's>,
    "send": Discrete(2)})``: in the array face a mapping of ``action`` and of ``send``, bool or integers 0
    and 1 ``(replicas, agents)``. The action formats for learning agents gain the same entry, see
    :class:`~fedbandit_envs.wrappers.transport.sending.Sending`.

    Information gains ``messages`` and ``bytes``, int64: the traffic of this round. Each traversal of an edge
    counts as a message of :data:`HEADER_BYTES` and 8 bytes a number, lost ones and doubles too, and is
    booked on the agent that first sent it, whoever passes it on. :attr:`traffic` has the totals of the
    episode.
    """

    def __init__(
        self,
        env: FederatedEnv,
        topology: str | Mapping[str, Any] | nx.Graph = "complete",
        schedule: Schedule | str | Mapping[str, Any] = "every_round",
        delay: int = 0,
        time_to_live: int | None = None,
        loss: float = 0.0,
        duplication: float = 0.0,
        echo: bool = False,
        cliques: bool = False,
    ) -> None:
        """Wraps ``env``; a privatizer, if any, must be inside.

        Args:
            env: The environment, without a channel.
            topology: Who hears whom, see :mod:`fedbandit_envs.wrappers.transport.topology`.
            schedule: When messages are sent, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
            delay: Rounds that each hop takes; 0 delivers with the observation of the round that sends.
            time_to_live: Most hops of a message; 1 reaches neighbours only. None takes each sender's message
                as many hops as the agent that is furthest from it is away.
            loss: Probability, in [0, 1), that a traversal of an edge loses the message. Another path may
                still bring it.
            duplication: Probability, in [0, 1), that a traversal which does not lose the message doubles it.
            echo: Whether agents find what they send in their own inboxes as well: in the round in which it is
                sent, whatever the delay and loss, at no traffic. With the topology ``{"edges": []}`` it is all they
                hear: learning from one's own releases.
            cliques: Whether agents take in messages of their own clique only (FedUCB; Dubey and Pentland 2020,
                Algorithm 3). Agents that reach each other, both ways, within ``time_to_live`` hops are joined,
                and the graph that results is covered by cliques, see
                :func:`~fedbandit_envs.wrappers.transport.clique_cover.clique_cover`. Messages flood and cost what they do
                without cliques.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` has a channel already, or the schedule needs
                every agent to reach every other and one does not (of drawn graphs, ``reset_batch`` says so).
        """
        super().__init__(env)
        inner = env
        while isinstance(inner, FederatedWrapper):
            if isinstance(inner, Channel):
                raise ValueError("env already has a Channel; one channel is allowed")
            inner = inner.env
        graph = Topology(topology, env.possible_agents)
        _check(delay, time_to_live, loss, duplication, echo, cliques)
        if graph.relays and time_to_live == 1:
            raise ValueError(
                "time_to_live is 1; None or at least 2 is required where a controller passes messages on"
            )
        self._schedule = make_schedule(schedule)
        self._delay = int(delay)
        self._echo = bool(echo)
        self._network = Network(
            graph, self.max_num_agents, time_to_live, loss, duplication,
            cliques=bool(cliques), all_connected=self._schedule.needs_all_connected,
        )  # fmt: skip
        released = env.single_release_space
        numbers = sum(int(np.prod(space.shape or ())) for space in released.values())
        self._bytes_per_message = HEADER_BYTES + BYTES_PER_NUMBER * numbers
        self.single_observation_space = spaces.Dict(
            {**env.single_observation_space.spaces, **inbox_spaces(released, self.max_num_agents, self._echo)}
        )
        if not self._schedule.fixed_in_advance:
            self.single_action_space = spaces.Dict(
                {"action": env.single_action_space, "send": spaces.Discrete(2)}
            )
            self.action_formats = {
                name: Sending(action_format) for name, action_format in env.action_formats.items()
            }

    @property
    def traffic(self) -> Arrays:
        """Total ``messages`` and ``bytes`` of the episode so far, int64 ``(replicas, agents)``, copies.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if not hasattr(self, "_total_messages"):
            raise ResetNeeded("a channel counts its traffic from the first reset on")
        return {
            "messages": self._total_messages.copy(),
            "bytes": self._total_messages * self._bytes_per_message,
        }

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, with empty inboxes and nothing under way.

        Raises:
            ValueError: The schedule needs every agent to reach every other, and in a drawn graph one does not.
                State is untouched.
        """
        routes = self._network.routes(seeds)
        reset = self.env.reset_batch(seeds)
        rows = (len(seeds), self.max_num_agents)
        self._routes = routes
        self._round = 0
        self._everyone = np.ones(rows, np.bool_)
        self._under_way: dict[int, list[_EndOfHop]] = {}
        self._inbox: Arrays = {
            name: np.zeros((*rows, *(space.shape or ())), space.dtype)
            for name, space in self.single_observation_space.items()
            if name not in self.env.single_observation_space.spaces
        }
        self._traffic: Arrays = {name: np.zeros(rows, np.int64) for name in ("messages", "bytes")}
        self._total_messages = np.zeros(rows, np.int64)
        self._dirty = False
        return BatchReset({**reset.observation, **self._inbox}, reset.info)

    def step_batch(self, action: Array | Mapping[str, Array]) -> BatchStep:
        """Plays one round, then sends and delivers; see :meth:`FederatedEnv.step_batch`.

        Args:
            action: The environment's actions; with a schedule that asks agents, a mapping of ``action`` and
                ``send``.

        Raises:
            BudgetExhaustedError: A privatizer refuses a release. The round has been played, but nothing was
                sent.
        """
        if self._schedule.fixed_in_advance:
            # A mapping here is the caller's mistake, which the environment names.
            observation, reward, truncated, info = self.env.step_batch(action)  # type: ignore[arg-type]
            asked = self._everyone
        else:
            action, asked = self._taken_apart(action)
            observation, reward, truncated, info = self.env.step_batch(action)
        self._round += 1
        if self._dirty:
            self._clear()
        wants = self._schedule.senders(self._round, asked)
        if wants.any():
            self._send(wants)
        if self._under_way:
            for end in self._under_way.pop(self._round, ()):
                self._deliver(end.statistic, end.arrives)
                self._book(end.following)
        return BatchStep({**observation, **self._inbox}, reward, truncated, {**info, **self._traffic})

    def _taken_apart(self, action: Any) -> tuple[Array, Array]:
        """Splits actions with a ``send`` entry, refusing bad ones before anything happens."""
        if not hasattr(self, "_everyone"):
            raise ResetNeeded("step was called before reset")
        if not isinstance(action, Mapping) or action.keys() != {"action", "send"}:
            raise TypeError(
                f"action is {action!r}; a mapping of 'action' and 'send' is required, since agents choose "
                "when to send"
            )
        send = np.asarray(action["send"])
        if send.shape != self._everyone.shape:
            raise ValueError(
                f"action['send'] has shape {send.shape}; (replicas, agents) = {self._everyone.shape} "
                "is required"
            )
        if send.dtype != np.bool_:
            if not np.issubdtype(send.dtype, np.integer):
                raise TypeError(
                    f"action['send'] has dtype {send.dtype}; bool or an integer dtype is required"
                )
            if not ((send == 0) | (send == 1)).all():
                raise ValueError(
                    f"action['send'] lies between {send.min()} and {send.max()}; 0 or 1 is required"
                )
        return action["action"], send.astype(np.bool_)

    def _clear(self) -> None:
        for array in (*self._inbox.values(), *self._traffic.values()):
            array.fill(0)
        self._dirty = False

    def _send(self, wants: Array) -> None:
        """Releases the statistics of those who may send, and puts their messages on the way."""
        senders = self.env.permit(wants)
        if not senders.any():
            return
        # Copies, since what is under way must outlive the buffers of the next release.
        statistic = {
            name: array.astype(np.float64).reshape(*array.shape[:2], -1)
            for name, array in self.env.release(senders).items()
        }
        if self._echo:
            self._deliver(statistic, senders[:, np.newaxis] & np.eye(self.max_num_agents, dtype=np.bool_))
            self._inbox["sent"][..., 0] = senders
        hops, traversals = self._network.carry(self._routes, senders, self._round)
        if self._delay == 0:
            self._deliver(statistic, hops > 0)
            self._book(traversals.sum(axis=-1))
            return
        self._book(traversals[..., 0])
        # What a hop begins is booked when the hop before it ends; nothing follows the last.
        following = np.concatenate([traversals[..., 1:], np.zeros_like(traversals[..., :1])], axis=-1)
        for hop in range(1, traversals.shape[-1] + 1):
            end = _EndOfHop(statistic, hops == hop, following[..., hop - 1])
            # A hop may end at the controller only.
            if end.arrives.any() or end.following.any():
                self._under_way.setdefault(self._round + hop * self._delay, []).append(end)

    def _deliver(self, statistic: Arrays, arrives: Array) -> None:
        """Adds to the inboxes what arrives, bool ``(replicas, agents, senders)``."""
        self._inbox["inbox_mask"] |= arrives
        for name, array in statistic.items():
            inbox = self._inbox[f"inbox_{name}"]
            add_arrivals(array, arrives, inbox.reshape(*inbox.shape[:3], -1))

    def _book(self, messages: Array) -> None:
        """Counts edge traversals, int64 ``(replicas, senders)``."""
        # Nothing is delivered without something being booked in the same round.
        self._dirty = True
        self._traffic["messages"] += messages
        self._traffic["bytes"] += messages * self._bytes_per_message
        self._total_messages += messages

    def privacy(self) -> Claim:
        """Claims what the releases inside claim, unless the times of sending may betray data as well."""
        claim = self.env.privacy()
        if self._schedule.fixed_in_advance:
            return claim
        reason = "agents choose when to send, and the times may depend on raw local data"
        return replace(claim, epsilon=None, reason=reason)


class _EndOfHop(NamedTuple):
    """What happens when messages sent in one round finish a hop.

    Attributes:
        statistic: What was released, float64 arrays by name, ``(replicas, senders, numbers)``.
        arrives: Whose message arrives where for the first time, bool ``(replicas, agents, senders)``.
        following: How many edge traversals make the next hop, int64 ``(replicas, senders)``.
    """

    statistic: Arrays
    arrives: Array
    following: Array


def _check(delay: Any, time_to_live: Any, loss: float, duplication: float, echo: bool, cliques: bool) -> None:
    for name, value, least, also in (("delay", delay, 0, ""), ("time_to_live", time_to_live, 1, "None or ")):
        if value is None and also:
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} is {value!r}; {also}an integer >= {least} is required")
        if value < least:
            raise ValueError(f"{name} is {value!r}; {also}an integer >= {least} is required")
    for name, value in (("loss", loss), ("duplication", duplication)):
        if not isinstance(value, int | float | np.number):
            raise TypeError(f"{name} is {value!r}; a number in [0, 1) is required")
        if not 0 <= value < 1:
            raise ValueError(f"{name} is {value!r}; a number in [0, 1) is required")
    for name, value in (("echo", echo), ("cliques", cliques)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} is {value!r}; True or False is required")
    if cliques and time_to_live is None:
        raise ValueError(
            "time_to_live is None; with cliques=True an integer >= 1 is required, since cliques are made of agents "
            "within so many hops of each other"
        )
