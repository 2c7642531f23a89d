"""The channel: who hears whom, when, how late and how reliably."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_flag, require_integer, require_number
from fedbandit_envs.federation import BatchReset, FederatedEnv
from fedbandit_envs.wrappers.transport.network import Network
from fedbandit_envs.wrappers.transport.schedule import Schedule
from fedbandit_envs.wrappers.transport.topology import Topology
from fedbandit_envs.wrappers.transport.transport import Transport


class Channel(Transport):
    """Sends what agents release to other agents' inboxes; see :class:`Transport` for schedules and inboxes.

    A release is one message, which floods the topology: whoever sees a message for the first time passes it on to all
    who hear it, except to whom it has just been heard from. Messages are numbered (by sender and round), so that
    nobody counts one twice.

    Senders of an inbox are all agents, in their order. Nobody hears from itself, but with ``echo``; then observations
    gain ``sent``, bool ``(1,)``: whether the agent's own message is among what arrived, and ``inbox_own``, bool
    ``(senders,)``: which one it is.

    Each traversal of an edge counts as a message, lost ones and doubles too, and is booked on the agent that first
    sent it, whoever passes it on.
    """

    examples = (
        {},
        {"topology": "star", "schedule": {"name": "fixed_gap", "gap": 2}, "delay": 1, "loss": 0.1},
        {"topology": "ring", "schedule": "on_request", "echo": True, "duplication": 0.1},
    )

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
            env: The environment, without a transport.
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
                :func:`~fedbandit_envs.wrappers.transport.clique_cover.clique_cover`. Messages flood and cost what they
                do without cliques.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` has a transport already, or the schedule needs
                every agent to reach every other and one does not (of drawn graphs, ``reset_batch`` says so).
        """
        _check(delay, time_to_live, loss, duplication, echo, cliques)
        super().__init__(env, schedule, bool(echo))
        graph = Topology(topology, env.possible_agents)
        if graph.relays and time_to_live == 1:
            raise ValueError(
                "time_to_live is 1; None or at least 2 is required where a controller passes messages on"
            )
        self._delay = int(delay)
        self._echo = bool(echo)
        self._network = Network(
            graph, self.max_num_agents, time_to_live, loss, duplication,
            cliques=bool(cliques), all_connected=self._schedule.needs_all_connected,
        )  # fmt: skip

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, with empty inboxes and nothing under way.

        Raises:
            ValueError: The schedule needs every agent to reach every other, and in a drawn graph one does not.
                State is untouched.
        """
        routes = self._network.routes(seeds)
        reset = super().reset_batch(seeds)
        self._routes = routes
        self._under_way: dict[int, list[_EndOfHop]] = {}
        return reset

    def _send(self, statistic: Arrays, senders: Array) -> None:
        apart = self.env.told_apart()
        if self._echo:
            own = senders[:, np.newaxis] & np.eye(self.max_num_agents, dtype=np.bool_)
            self._deliver(statistic, own)
            self._inbox["inbox_own"][...] = own
            self._inbox["sent"][..., 0] = senders
        hops, traversals = self._network.carry(self._routes, senders, self._round)
        if self._delay == 0:
            self._deliver(statistic, hops > 0, apart)
            self._book(traversals.sum(axis=-1))
            return
        self._book(traversals[..., 0])
        # What a hop begins is booked when the hop before it ends; nothing follows the last.
        following = np.concatenate([traversals[..., 1:], np.zeros_like(traversals[..., :1])], axis=-1)
        for hop in range(1, traversals.shape[-1] + 1):
            end = _EndOfHop(statistic, hops == hop, following[..., hop - 1], apart)
            # A hop may end at the controller only.
            if end.arrives.any() or end.following.any():
                self._under_way.setdefault(self._round + hop * self._delay, []).append(end)

    def _arrive(self) -> None:
        for end in self._under_way.pop(self._round, ()):
            self._deliver(end.statistic, end.arrives, end.apart)
            self._book(end.following)


class _EndOfHop(NamedTuple):
    """What happens when messages sent in one round finish a hop.

    Attributes:
        statistic: What was released, float64 arrays by name, ``(replicas, senders, numbers)``.
        arrives: Whose message arrives where for the first time, bool ``(replicas, agents, senders)``.
        following: How many edge traversals make the next hop, int64 ``(replicas, senders)``.
        apart: What is said to each receiver beyond that, see :meth:`FederatedEnv.told_apart`.
    """

    statistic: Arrays
    arrives: Array
    following: Array
    apart: Arrays | None


def _check(delay: Any, time_to_live: Any, loss: float, duplication: float, echo: bool, cliques: bool) -> None:
    require_integer("delay", delay, 0)
    if time_to_live is not None:
        require_integer("time_to_live", time_to_live, 1)
    require_number("loss", loss, 0, 1, open_above=True)
    require_number("duplication", duplication, 0, 1, open_above=True)
    require_flag("echo", echo)
    require_flag("cliques", cliques)
    if cliques and time_to_live is None:
        raise ValueError(
            "time_to_live is None; with cliques=True an integer >= 1 is required, since cliques are made of agents "
            "within so many hops of each other"
        )
