"""Topologies: graphs between agents that are fixed, drawn anew in each episode, or a star with a controller.

A graph is an adjacency matrix, bool ``(nodes, nodes)``: entry (u, v) is true if v receives messages from u. Agents come
first, in their order; nodes after them only pass messages on. Specifications can be written as JSON, except networkx
graphs:

* a name, ``"ring"``, or a mapping of the name and the argument, ``{"name": "erdos_renyi", "probability": 0.3}``, see
  below;
* ``{"edges": [[0, 1], [1, 2]]}``: pairs of agents that receive messages from each other;
* ``{"adjacency": [[0, 1], [0, 0]]}``: the matrix, which may be asymmetric;
* a networkx graph, undirected or directed, whose nodes are the agents' numbers or names.

| name | argument | the graph |
|---|---|---|
| `complete` | | each agent receives messages from every other |
| `star` | | all agents are joined to a controller, which is no agent and passes messages on between them |
| `line` | | each agent receives messages from the agent before and the agent after it |
| `ring` | | a line whose ends receive messages from each other |
| `erdos_renyi` | `probability` | drawn: each pair of agents is joined with that probability, independently |
| `random_regular` | `degree` | drawn (nearly) uniformly from all graphs in which each agent has `degree` neighbours |

The network between agents: its graphs, lost and doubled messages, and where messages arrive by flooding.

Flooding: every node that receives a message for the first time passes it on. The compiled kernel floods one message of
every agent through every replica's graph at once. All hops take equally long, so where and after how many hops a
message arrives depends on the graph and on the lost transmissions only, not on the duration of a hop.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from inspect import getfullargspec
from typing import Any

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.randomness.streams import Purpose, stream


def _complete(num_agents: int, generator: np.random.Generator) -> Array:
    return ~np.eye(num_agents, dtype=np.bool_)


def _star(num_agents: int, generator: np.random.Generator) -> Array:
    adjacency = np.zeros((num_agents + 1, num_agents + 1), np.bool_)
    adjacency[-1, :-1] = adjacency[:-1, -1] = True
    return adjacency


def _line(num_agents: int, generator: np.random.Generator) -> Array:
    return np.eye(num_agents, k=1, dtype=np.bool_) | np.eye(num_agents, k=-1, dtype=np.bool_)


def _ring(num_agents: int, generator: np.random.Generator) -> Array:
    adjacency = _line(num_agents, generator)
    if num_agents > 1:
        adjacency[0, -1] = adjacency[-1, 0] = True
    return adjacency


def _erdos_renyi(num_agents: int, generator: np.random.Generator, *, probability: float) -> Array:
    if not isinstance(probability, int | float | np.number) or not 0 <= probability <= 1:
        raise ValueError(f"probability is {probability!r}; a number in [0, 1] is required")
    upper = np.triu(generator.random((num_agents, num_agents)) < probability, k=1)
    return upper | upper.T


def _random_regular(num_agents: int, generator: np.random.Generator, *, degree: int) -> Array:
    if not isinstance(degree, int | np.integer) or not 0 <= degree < num_agents or degree * num_agents % 2:
        raise ValueError(
            f"degree is {degree!r}; an integer >= 0 below the number of agents, {num_agents}, whose product "
            "with it is even is required"
        )
    graph = nx.random_regular_graph(degree, num_agents, seed=int(generator.integers(2**32)))
    return _adjacency_of(graph, range(num_agents))


TOPOLOGIES: dict[str, Callable[..., Array]] = {
    "complete": _complete,
    "star": _star,
    "ring": _ring,
    "line": _line,
    "erdos_renyi": _erdos_renyi,
    "random_regular": _random_regular,
}
"""Functions that return a graph, given the number of agents and a random generator, by the name in a specification.

Functions with a further keyword argument draw a graph; the others always return the same graph."""


class Topology:
    """The graph between the agents of a federation, fixed or drawn anew for each replica and episode.

    Attributes:
        num_agents: Number of agents.
        fixed: The adjacency matrix, bool ``(nodes, nodes)``; None where graphs are drawn.
        drawn: Whether a new graph is drawn for each replica and episode.
        relays: Number of nodes that are no agents and only pass messages on.

    Example:
        >>> ring = Topology("ring", ["agent_0", "agent_1", "agent_2", "agent_3"])
        >>> ring.fixed.astype(int).tolist()
        [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    """

    def __init__(self, spec: str | Mapping[str, Any] | nx.Graph, agents: Sequence[str]) -> None:
        """Reads the specification of a graph; the module's docstring lists its forms.

        Args:
            spec: The specification.
            agents: The agents' names.

        Raises:
            TypeError: The specification has the wrong type.
            ValueError: The name is unknown, an argument is out of range, or the graph does not fit the
                agents.
        """
        self.num_agents = len(agents)
        self.fixed: Array | None = None
        if isinstance(spec, nx.Graph):
            self.fixed = _from_networkx(spec, agents)
        elif isinstance(spec, str | Mapping):
            self._read({"name": spec} if isinstance(spec, str) else dict(spec))
        else:
            raise TypeError(f"topology is {spec!r}; a name, a mapping or a networkx graph is required")
        if self.fixed is not None and (loops := self.fixed.diagonal()).any():
            raise ValueError(
                f"topology has a self-loop at agent {loops.argmax()}; edges between different agents are required"
            )
        self.drawn = self.fixed is None
        self.relays = 0 if self.fixed is None else len(self.fixed) - self.num_agents

    def _read(self, spec: dict[str, Any]) -> None:
        needed = {name: getfullargspec(rule).kwonlyargs for name, rule in TOPOLOGIES.items()}
        name = str(spec.get("name"))
        if spec.keys() == {"edges"}:
            self.fixed = _from_edges(spec["edges"], self.num_agents)
        elif spec.keys() == {"adjacency"}:
            self.fixed = _from_matrix(spec["adjacency"], self.num_agents)
        elif name in needed and spec.keys() == {"name", *needed[name]}:
            arguments = {argument: spec[argument] for argument in needed[name]}
            self._draw = partial(TOPOLOGIES[name], self.num_agents, **arguments)
            # A graph is drawn here even where each episode draws its own, so that bad arguments raise errors now.
            graph = self._draw(np.random.default_rng(0))
            self.fixed = None if arguments else graph
        else:
            drawn = ", ".join(
                f"{{'name': {one!r}, {names[0]!r}: ...}}" for one, names in needed.items() if names
            )
            raise ValueError(
                f"topology is {spec}; one of the names {sorted(one for one in needed if not needed[one])}, {drawn}, "
                "{'edges': ...} or {'adjacency': ...} is required"
            )

    def adjacency(self, generator: np.random.Generator) -> Array:
        """Returns the fixed graph or a newly drawn one, bool ``(nodes, nodes)``; only drawing uses ``generator``."""
        return self._draw(generator) if self.fixed is None else self.fixed


def _from_networkx(graph: nx.Graph, agents: Sequence[str]) -> Array:
    for nodes in (range(len(agents)), agents):
        if set(graph.nodes) == set(nodes):
            return _adjacency_of(graph, nodes)
    raise ValueError(
        f"topology is a graph of {len(graph)} nodes, {sorted(map(repr, graph.nodes))[:5]} and so on; "
        f"exactly the agents, 0 to {len(agents) - 1} or {agents[0]!r} to {agents[-1]!r}, are required "
        "(networkx.convert_node_labels_to_integers numbers nodes)"
    )


def _adjacency_of(graph: nx.Graph, nodes: Sequence[Any]) -> Array:
    # Weights are ignored, since an edge of weight 0 is still an edge.
    return nx.to_numpy_array(graph, nodelist=list(nodes), weight=None) > 0


def _from_edges(edges: Any, num_agents: int) -> Array:
    adjacency = np.zeros((num_agents, num_agents), np.bool_)
    for edge in edges:
        u, v = edge if isinstance(edge, Sequence) and len(edge) == 2 else (None, None)
        if not all(isinstance(node, int | np.integer) and 0 <= node < num_agents for node in (u, v)):
            raise ValueError(f"topology has the edge {edge!r}; pairs of 0 to {num_agents - 1} are required")
        adjacency[u, v] = adjacency[v, u] = True
    return adjacency


def _from_matrix(matrix: Any, num_agents: int) -> Array:
    array = np.array(matrix)
    if array.shape != (num_agents, num_agents):
        raise ValueError(
            f"topology has an adjacency of shape {array.shape}; ({num_agents}, {num_agents}), one row and "
            "column an agent, is required"
        )
    if not np.isin(array, (0, 1)).all():
        raise ValueError(f"topology has the adjacency {matrix!r}; entries 0 or 1 are required")
    return array.astype(np.bool_)


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
