"""The network between agents: its graphs, lost and doubled messages, and where messages arrive by flooding.

Flooding: every node that receives a message for the first time passes it on. The compiled kernel floods one message of
every agent through every replica's graph at once. All hops take equally long, so where and after how many hops a
message arrives depends on the graph and on the lost transmissions only, not on the duration of a hop.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers.transport.topology import Topology


def edge_lists(graphs: list[Array]) -> Array:
    """Returns the lists of directed edges of graphs.

    Args:
        graphs: Adjacency matrices, bool ``(nodes, nodes)``.

    Returns:
        int32 ``(graphs, edges, 3)``: tail, head, and the index of the edge from head to tail, -1 if there is none.
        Shorter lists end with rows of -1.
    """
    edges = np.full((len(graphs), max((int(graph.sum()) for graph in graphs), default=0), 3), -1, np.int32)
    for listed, graph in zip(edges, graphs, strict=True):
        number = np.full(graph.shape, -1, np.int32)
        count = int(graph.sum())
        number[graph] = np.arange(count)
        listed[:count, 0], listed[:count, 1] = np.nonzero(graph)
        listed[:count, 2] = number.T[graph]
    return edges


@allocating_kernel
def flood(
    edges: Array, lost: Array, duplicated: Array, time_to_live: Array, nodes: int
) -> tuple[Array, Array]:
    """Returns when one message of every sender reaches each node, and how many transmissions that takes.

    No node passes a message back to the node that it has just received it from.

    Args:
        edges: As :func:`edge_lists` returns them, int32 ``(graphs, edges, 3)``: one graph a replica, or one
            for all.
        lost: Whether a transmission of a sender's message along an edge loses it, bool ``(replicas, senders, edges)``;
            with 0 for ``edges`` no transmission is lost or doubled.
        duplicated: Whether the transmission doubles the message, if it does not lose it, same shape.
        time_to_live: The largest number of hops of a message, int64 ``(replicas, senders)``.
        nodes: Number of nodes of each graph.

    Returns:
        Two arrays:

        * The number of hops after which each node first receives the message, int64 ``(replicas, nodes, senders)``: 0
          for the sender itself, -1 for nodes that it never reaches.
        * The number of transmissions in each hop, lost and doubled ones included, int64 ``(replicas, senders, hops)``.
    """
    replicas, senders, faults = lost.shape
    longest = 1
    for limit in time_to_live.flat:
        longest = max(longest, limit)
    arrival = np.full((replicas, nodes, senders), -1)
    traversals = np.zeros((replicas, senders, longest), np.int64)
    for r in range(replicas):
        graph = edges[r % edges.shape[0]]
        for s in range(senders):
            seen = arrival[r, :, s]
            seen[s] = 0
            for hop in range(1, time_to_live[r, s] + 1):
                spreads = False
                for e in range(edges.shape[1]):
                    tail, head, back = graph[e, 0], graph[e, 1], graph[e, 2]
                    if tail < 0:
                        break
                    if seen[tail] != hop - 1:
                        continue
                    from_head = hop > 1 and back >= 0 and seen[head] == hop - 2
                    if from_head and not (faults and lost[r, s, back]):
                        continue
                    traversals[r, s, hop - 1] += 1
                    if faults and lost[r, s, e]:
                        continue
                    if faults and duplicated[r, s, e]:
                        traversals[r, s, hop - 1] += 1
                    if seen[head] < 0:
                        seen[head] = hop
                        spreads = True
                if not spreads:
                    break
    return arrival, traversals


@dataclass(eq=False)
class Network:
    """The network that carries messages of all agents in all replicas, by flooding.

    Graphs are drawn from the random stream ``(seed, Purpose.CHANNEL, 0)``. Losses and doublings of messages sent in
    round t are drawn from ``(seed, Purpose.CHANNEL, t)``, for all agents, whichever of them send. So random numbers
    depend neither on actions nor on other replicas, and losses do not depend on the probability of doubling.

    Attributes:
        topology: The graph between the agents, fixed or drawn for each episode.
        time_to_live: The largest number of hops of a message, or None.
        loss: Probability that a transmission loses the message.
        duplication: Probability that a transmission which does not lose the message doubles it.
        cliques: Whether agents receive messages of their own clique only; ``time_to_live`` is then given.
        all_connected: Whether graphs in which some agent cannot reach some other raise an error.

    Raises:
        ValueError: Not all agents of a fixed graph are connected, and they must be.
    """

    topology: Topology
    time_to_live: int | None
    loss: float
    duplication: float
    cliques: bool
    all_connected: bool

    def __post_init__(self) -> None:
        """Floods a fixed graph once, to know where and when messages arrive in every episode."""
        self._num_nodes = self.topology.num_agents + self.topology.relays
        self._seeds: list[int] = []
        if self.topology.fixed is not None:
            self._explore([self.topology.fixed], [0])

    def in_episodes(self, seeds: Sequence[int]) -> "Network":
        """Returns a copy of this network for episodes with the given seeds, with their graphs drawn if they are random.

        Raises:
            ValueError: Not all agents of a drawn graph are connected, and they must be.
        """
        episodes = copy(self)
        episodes._seeds = list(seeds)
        if self.topology.drawn:
            graphs = [self.topology.adjacency(stream(seed, Purpose.CHANNEL, 0)) for seed in seeds]
            episodes._explore(graphs, seeds)
        else:
            episodes._hops, episodes._traversals, episodes._limits = (
                np.repeat(array, len(seeds), axis=0) for array in (self._hops, self._traversals, self._limits)
            )
        return episodes

    def _explore(self, graphs: list[Array], seeds: Sequence[int]) -> None:
        """Computes where messages arrive in each graph (one for each seed), by flooding without loss or doubling."""
        agents = self.topology.num_agents
        self._edges = edge_lists(graphs)
        none = np.zeros((len(graphs), agents, 0), np.bool_)
        limit = self._num_nodes if self.time_to_live is None else self.time_to_live
        # The largest number of hops of each sender's message, (replicas, senders).
        self._limits = np.full(none.shape[:2], min(limit, self._num_nodes))
        hops, self._traversals = flood(self._edges, none, none, self._limits, self._num_nodes)
        self._hops = hops[:, :agents]
        if self.all_connected and (self._hops < 0).any():
            replica, receiver, sender = (int(i) for i in np.argwhere(self._hops < 0)[0])
            raise ValueError(
                f"topology and time_to_live, which is {self.time_to_live}, do not let agent {sender} reach agent "
                f"{receiver}{f' with the seed {seeds[replica]}' if self.topology.drawn else ''}; a connected "
                "topology and enough hops are required, since a request must reach every agent"
            )
        if self.time_to_live is None:
            # No message travels further than to the furthest agent.
            self._limits = self._hops.max(axis=1)
            _, self._traversals = flood(self._edges, none, none, self._limits, self._num_nodes)
        if self.cliques:
            for replica, reached in enumerate(self._hops >= 0):
                clique = clique_cover(reached)
                self._hops[replica] *= clique[:, np.newaxis] == clique

    def graph(self, replica: int) -> Array:
        """Returns the adjacency matrix of a replica's graph, bool ``(nodes, nodes)``."""
        tails, heads, _ = self._edges[replica % len(self._edges)].T
        joined = np.zeros((self._num_nodes, self._num_nodes), np.bool_)
        joined[tails[tails >= 0], heads[tails >= 0]] = True
        return joined

    def carry(self, senders: Array, t: int) -> tuple[Array, Array]:
        """Returns where the messages sent in a round arrive, and how many transmissions each of their hops takes.

        Args:
            senders: Which agents send, bool ``(replicas, agents)``.
            t: The round, counted from 1.

        Returns:
            * The number of hops after which an agent first receives a sender's message, int64 ``(replicas, agents,
              senders)``; 0 or less where it does not.
            * The number of transmissions in each hop of a sender's message, int64 ``(replicas, senders, hops)``.
        """
        hops, traversals = self._hops, self._traversals
        if self.loss or self.duplication:
            hops, traversals = self._carry_with_faults(senders, t)
        if senders.all():
            return hops, traversals
        return hops * senders[:, np.newaxis], traversals * senders[..., np.newaxis]

    def _carry_with_faults(self, senders: Array, t: int) -> tuple[Array, Array]:
        faults = np.ones((2, *senders.shape, self._edges.shape[1]))
        for replica in np.flatnonzero(senders.any(axis=1)):
            # Lists of edges are padded to the longest in the batch. Faults are drawn for the replica's own edges only,
            # so that they do not depend on other replicas.
            own = int((self._edges[replica % len(self._edges), :, 0] >= 0).sum())
            generator = stream(self._seeds[replica], Purpose.CHANNEL, t)
            faults[:, replica, :, :own] = generator.random((2, senders.shape[1], own))
        lost, duplicated = faults[0] < self.loss, faults[1] < self.duplication
        hops, traversals = flood(self._edges, lost, duplicated, self._limits, self._num_nodes)
        # Only agents that a message reaches without faults may receive it: flooding ignores cliques, the mask does not.
        return hops[:, : self.topology.num_agents] * (self._hops > 0), traversals


def clique_cover(reaches: Array) -> Array:
    """Returns a partition of the agents into few cliques, from a greedy colouring of the complement graph.

    FedUCB (Dubey and Pentland 2020, Algorithm 3) takes the power graph, in which two agents are joined if they are
    within gamma hops of each other. Finding the smallest number of cliques is a hard problem. The greedy colouring
    takes agents in DSATUR order (first those whose neighbours already have most colours), which on random, regular and
    line graphs needs fewer cliques than the other deterministic orders of networkx.

    Args:
        reaches: Whether one agent reaches another, bool ``(agents, agents)``; two agents are joined if both reach each
            other. The diagonal is ignored.

    Returns:
        The number of each agent's clique, from 0, int64 ``(agents,)``. The same graph has the same cliques.
    """
    apart = ~(reaches & reaches.T)
    np.fill_diagonal(apart, False)
    colours = nx.greedy_color(nx.from_numpy_array(apart), strategy="DSATUR")
    return np.array([colours[agent] for agent in range(len(reaches))])
