"""The network between agents: its graphs, lost and doubled messages, and where messages arrive."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers.transport.clique_cover import clique_cover
from fedbandit_envs.wrappers.transport.flooding import edge_lists, flood
from fedbandit_envs.wrappers.transport.topology import Topology


class Routes(NamedTuple):
    """The graphs of one episode, and where messages arrive in them when none is lost.

    Attributes:
        seeds: The replicas' seeds.
        edges: As :func:`.flooding.edge_lists` returns them; one graph a replica, or one for all.
        hops: The number of hops after which an agent first receives a sender's message, int64 ``(replicas, agents,
            senders)``; 0 or less where it does not.
        traversals: The number of transmissions in each hop of a sender's message, int64 ``(replicas, senders, hops)``.
        limits: The largest number of hops of each sender's message, int64 ``(replicas, senders)``.
    """

    seeds: tuple[int, ...]
    edges: Array
    hops: Array
    traversals: Array
    limits: Array


class Network:
    """The network that carries messages of all agents in all replicas, by flooding.

    Graphs are drawn from ``(seed, Purpose.CHANNEL, 0)``, and faults of messages sent in round t from
    ``(seed, Purpose.CHANNEL, t)``, for all agents, whichever of them send. So random numbers depend neither on what
    agents do nor on other replicas, and the same transmissions are lost whatever the rate of duplication is.
    """

    def __init__(
        self,
        topology: Topology,
        num_agents: int,
        time_to_live: int | None,
        loss: float,
        duplication: float,
        cliques: bool,
        all_connected: bool,
    ) -> None:
        """Prepares a network, and explores its graph if that is fixed.

        Args:
            topology: The graphs.
            num_agents: Number of agents, the first nodes of the graphs.
            time_to_live: The largest number of hops of a message, or None.
            loss: Probability that a transmission loses the message.
            duplication: Probability that a transmission which does not lose the message doubles it.
            cliques: Whether agents receive messages of their own clique only; ``time_to_live`` is then given.
            all_connected: Whether to refuse graphs in which some agent cannot reach some other.

        Raises:
            ValueError: Not all agents of a fixed graph are connected, and they must be.
        """
        self._topology = topology
        self._num_agents = num_agents
        self._num_nodes = num_agents + topology.relays
        self._time_to_live = time_to_live
        self._loss = loss
        self._duplication = duplication
        self._cliques = cliques
        self._all_connected = all_connected
        self._fixed = None if topology.fixed is None else self._explored([topology.fixed], (0,))

    def routes(self, seeds: Sequence[int]) -> Routes:
        """Returns the routes of one episode a seed, in graphs that are drawn or fixed.

        Raises:
            ValueError: Not all agents of a drawn graph are connected, and they must be.
        """
        if self._fixed is None:
            graphs = [self._topology.adjacency(stream(seed, Purpose.CHANNEL, 0)) for seed in seeds]
            return self._explored(graphs, tuple(seeds))
        hops, traversals, limits = (
            np.repeat(array, len(seeds), axis=0)
            for array in (self._fixed.hops, self._fixed.traversals, self._fixed.limits)
        )
        return Routes(tuple(seeds), self._fixed.edges, hops, traversals, limits)

    def _explored(self, graphs: list[Array], seeds: tuple[int, ...]) -> Routes:
        """Returns the routes in some graphs, one a seed, by flooding them without faults."""
        edges = edge_lists(graphs)
        none = np.zeros((len(graphs), self._num_agents, edges.shape[1]), np.bool_)
        limit = self._num_nodes if self._time_to_live is None else self._time_to_live
        limits = np.full(none.shape[:2], min(limit, self._num_nodes))
        hops, traversals = flood(edges, none, none, limits, self._num_nodes)
        hops = hops[:, : self._num_agents]
        if self._all_connected and (hops < 0).any():
            replica, receiver, sender = (int(i) for i in np.argwhere(hops < 0)[0])
            raise ValueError(
                f"topology and time_to_live, which is {self._time_to_live}, do not let agent {sender} reach agent "
                f"{receiver}{f' with the seed {seeds[replica]}' if self._topology.drawn else ''}; a connected "
                "topology and enough hops are required, since a request must reach every agent"
            )
        if self._time_to_live is None:
            # No message travels further than to the furthest agent.
            limits = hops.max(axis=1)
            _, traversals = flood(edges, none, none, limits, self._num_nodes)
        if self._cliques:
            for replica, reached in enumerate(hops >= 0):
                clique = clique_cover(reached)
                hops[replica] *= clique[:, np.newaxis] == clique
        return Routes(seeds, edges, hops, traversals, limits)

    def carry(self, routes: Routes, senders: Array, t: int) -> tuple[Array, Array]:
        """Returns where the messages sent in a round arrive, and the transmissions that takes.

        Args:
            routes: The routes of the episode.
            senders: Which agents send, bool ``(replicas, agents)``.
            t: The round, counted from 1.

        Returns:
            * The number of hops after which an agent first receives a sender's message, int64 ``(replicas, agents,
              senders)``; 0 or less where it does not.
            * The number of transmissions in each hop of a sender's message, int64 ``(replicas, senders, hops)``.
        """
        hops, traversals = routes.hops, routes.traversals
        if self._loss or self._duplication:
            hops, traversals = self._carry_with_faults(routes, senders, t)
        if senders.all():
            return hops, traversals
        return hops * senders[:, np.newaxis], traversals * senders[..., np.newaxis]

    def _carry_with_faults(self, routes: Routes, senders: Array, t: int) -> tuple[Array, Array]:
        num_edges = routes.edges.shape[1]
        faults = np.ones((2, *senders.shape, num_edges))
        for replica in np.flatnonzero(senders.any(axis=1)):
            # Shorter lists of edges are filled up to the longest in the batch; only the replica's own are
            # drawn.
            own = int((routes.edges[replica % len(routes.edges), :, 0] >= 0).sum())
            generator = stream(routes.seeds[replica], Purpose.CHANNEL, t)
            faults[:, replica, :, :own] = generator.random((2, senders.shape[1], own))
        lost, duplicated = faults[0] < self._loss, faults[1] < self._duplication
        hops, traversals = flood(routes.edges, lost, duplicated, routes.limits, self._num_nodes)
        # A message reaches no agent that it would not reach without faults: none of another clique, for example.
        return hops[:, : self._num_agents] * (routes.hops > 0), traversals
