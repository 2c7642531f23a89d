"""The network between agents: graphs, loss and duplication, and where messages get to."""

from collections.abc import Sequence

import numpy as np

from fedbandit_envs.federation import Array
from fedbandit_envs.streams import Purpose, stream
from fedbandit_envs.wrappers.flooding import edge_lists, flood
from fedbandit_envs.wrappers.topology import Topology


class Network:
    """Carries messages of all agents in all replicas, by flooding.

    Graphs are drawn from ``(seed, Purpose.CHANNEL, 0)`` and faults of what is sent in round t from
    ``(seed, Purpose.CHANNEL, t)``, for all senders whoever sends. So luck depends neither on what agents do
    nor on other replicas, and the same traversals are lost whatever the rate of duplication is.
    """

    def __init__(
        self, topology: Topology, num_agents: int, time_to_live: int | None, loss: float, duplication: float
    ) -> None:
        """Prepares a network without graphs; see :class:`~fedbandit_envs.wrappers.channel.Channel`."""
        self._topology = topology
        self._num_agents = num_agents
        self._time_to_live = time_to_live
        self._loss = loss
        self._duplication = duplication

    def reset(self, seeds: Sequence[int]) -> None:
        """Draws the graphs of one episode a seed, or takes the fixed one."""
        self._seeds = list(seeds)
        # A fixed graph is explored once; every replica reads the same memory.
        explored = seeds if self._topology.drawn else seeds[:1]
        graphs = [self._topology.adjacency(stream(seed, Purpose.CHANNEL, 0)) for seed in explored]
        edges = edge_lists(graphs)
        self._nodes = len(graphs[0])
        whole = (len(graphs), self._num_agents, edges.shape[1])
        none = np.zeros(whole, np.bool_)
        limit = self._nodes if self._time_to_live is None else self._time_to_live
        limits = np.full(whole[:2], min(limit, self._nodes))
        if self._time_to_live is None:
            hops, _ = flood(edges, none, none, limits, self._nodes)
            limits = hops[:, : self._num_agents].max(axis=1)
        hops, traversals = flood(edges, none, none, limits, self._nodes)
        self._edges = edges
        self._hops, self._traversals, self._limits = (
            np.repeat(array, len(seeds) // len(graphs), axis=0)
            for array in (hops[:, : self._num_agents], traversals, limits)
        )

    def carry(self, senders: Array, t: int) -> tuple[Array, Array]:
        """Carries what is sent in round ``t``.

        Args:
            senders: Who sends, bool ``(replicas, agents)``.
            t: The round, counted from 1.

        Returns:
            * After how many hops each agent hears each sender first, int64 ``(replicas, agents, senders)``;
              0 or less where it does not.
            * By how many edge traversals each sender's message makes the first hop, the second and so on,
              int64 ``(replicas, senders, hops)``.
        """
        hops, traversals = self._hops, self._traversals
        if self._loss or self._duplication:
            hops, traversals = self._carry_with_faults(senders, t)
        if senders.all():
            return hops, traversals
        return hops * senders[:, np.newaxis], traversals * senders[..., np.newaxis]

    def _carry_with_faults(self, senders: Array, t: int) -> tuple[Array, Array]:
        num_edges = self._edges.shape[1]
        faults = np.ones((2, *senders.shape, num_edges))
        for replica in np.flatnonzero(senders.any(axis=1)):
            # Shorter lists of edges are filled up to the longest in the batch; only the replica's own are
            # drawn.
            own = int((self._edges[replica % len(self._edges), :, 0] >= 0).sum())
            generator = stream(self._seeds[replica], Purpose.CHANNEL, t)
            faults[:, replica, :, :own] = generator.random((2, senders.shape[1], own))
        lost, duplicated = faults[0] < self._loss, faults[1] < self._duplication
        hops, traversals = flood(self._edges, lost, duplicated, self._limits, self._nodes)
        return hops[:, : self._num_agents], traversals
