"""Topologies: graphs between agents that are fixed, drawn anew in each episode, or a star with a controller.

A graph is an adjacency matrix, bool ``(nodes, nodes)``: entry (u, v) is true if v receives messages from u. Agents come
first, in their order; nodes after them only pass messages on. Specifications can be written as JSON, except networkx
graphs:

* a name, ``"ring"``, or a mapping of the name and the argument, ``{"name": "erdos_renyi", "probability": 0.3}``, see
  below;
* ``{"edges": [[0, 1], [1, 2]]}``: pairs of agents that receive messages from each other;
* a networkx graph, undirected or directed, whose nodes are the agents' numbers or names.

| name | argument | the graph |
|---|---|---|
| `complete` | | each agent receives messages from every other |
| `star` | | all agents are joined to a controller, which is no agent and passes messages on between them |
| `line` | | each agent receives messages from the agent before and the agent after it |
| `ring` | | a line whose ends receive messages from each other |
| `erdos_renyi` | `probability` | drawn: each pair of agents is joined with that probability, independently |

Messages flood the network: every node that receives a message for the first time passes it on. The compiled kernel
floods one message of every agent through every replica's graph at once. All hops take equally long, so where and after
how many hops a message arrives depends on the graph and on the lost transmissions only, not on the duration of a hop.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.basics.entry_points import checked, make_rule


def _complete(num_agents: int, generator: np.random.Generator) -> Array:
    return ~np.eye(num_agents, dtype=np.bool_)


def star(num_agents: int, generator: np.random.Generator | None = None) -> Array:
    """Returns the graph in which all agents are joined to one more node."""
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


@checked(lambda probability: require_number("probability", probability, 0, 1))
def _erdos_renyi(num_agents: int, generator: np.random.Generator, *, probability: float) -> Array:
    upper = np.triu(generator.random((num_agents, num_agents)) < probability, k=1)
    return upper | upper.T


TOPOLOGIES: dict[str, Callable[..., Array]] = {
    "complete": _complete,
    "star": star,
    "ring": _ring,
    "line": _line,
    "erdos_renyi": _erdos_renyi,
}
"""Functions that return a graph, given the number of agents and a random generator, by the name in a specification.

Functions with a further keyword argument draw a graph; the others always return the same graph."""


def make_topology(
    spec: str | Mapping[str, Any] | nx.Graph, num_agents: int
) -> Array | Callable[[np.random.Generator], Array]:
    """Returns the graph of a specification, or the function that draws it anew in each replica and episode.

    Args:
        spec: The specification; the module's docstring lists its forms.
        num_agents: Number of agents.

    Raises:
        TypeError: The specification has the wrong type, or an argument that the graph does not have.
        ValueError: The name is unknown, an argument is out of range, or the graph does not fit the agents.

    Example:
        >>> make_topology("ring", 4).astype(int).tolist()
        [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    """
    if isinstance(spec, Mapping) and list(spec) == ["edges"]:
        graph = nx.empty_graph(num_agents)
        graph.add_edges_from(spec["edges"])
        spec = graph
    if isinstance(spec, nx.Graph):
        return _from_networkx(spec, num_agents)
    rule = make_rule("topology", spec, TOPOLOGIES, ", or a mapping of 'edges',")
    draw = partial(rule, num_agents)
    return draw if rule.keywords else draw(np.random.default_rng(0))


def _from_networkx(graph: nx.Graph, num_agents: int) -> Array:
    numbers = list(range(num_agents))
    for nodes in (numbers, [f"agent_{number}" for number in numbers]):
        if set(graph.nodes) == set(nodes):
            break
    else:
        raise ValueError(
            f"topology is a graph of {len(graph)} nodes, {sorted(map(repr, graph.nodes))[:5]} and so on; exactly the "
            f"agents, 0 to {num_agents - 1} or 'agent_0' to 'agent_{num_agents - 1}', are required "
            "(networkx.convert_node_labels_to_integers numbers nodes)"
        )
    # Weights are ignored, since an edge of weight 0 is still an edge.
    adjacency: Array = nx.to_numpy_array(graph, nodelist=nodes, weight=None) > 0
    for agent in np.flatnonzero(adjacency.diagonal()):
        raise ValueError(f"topology has a self-loop at agent {agent}; edges between two agents are required")
    return adjacency


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


def explore(
    graphs: list[Array], agents: int, time_to_live: int | None, cliques: bool, all_connected: bool
) -> tuple[Array, Array, Array, Array]:
    """Returns where messages arrive in each graph, by flooding it without loss or doubling.

    Args:
        graphs: The adjacency matrices, bool ``(nodes, nodes)``.
        agents: Number of agents, which are the first nodes.
        time_to_live: The largest number of hops of a message; None for as many as the furthest agent needs.
        cliques: Whether agents receive messages of their own clique only; ``time_to_live`` is then given.
        all_connected: Whether graphs in which some agent cannot reach some other raise an error.

    Returns:
        Four arrays, with one row for each graph:

        * The edges, see :func:`edge_lists`.
        * The largest number of hops of each sender's message, int64 ``(graphs, senders)``.
        * The number of hops after which an agent first receives a sender's message, int64 ``(graphs, agents,
          senders)``; 0 or less where it does not.
        * The number of transmissions in each hop of a sender's message, int64 ``(graphs, senders, hops)``.

    Raises:
        ValueError: Not all agents are connected, and they must be.
    """
    edges, nodes = edge_lists(graphs), max(map(len, graphs), default=agents)
    none = np.zeros((len(graphs), agents, 0), np.bool_)
    limits = np.full(none.shape[:2], nodes if time_to_live is None else min(time_to_live, nodes))
    arrival, traversals = flood(edges, none, none, limits, nodes)
    hops = arrival[:, :agents]
    if all_connected and (hops < 0).any():
        _, receiver, sender = np.argwhere(hops < 0)[0]
        raise ValueError(
            f"topology and time_to_live, which is {time_to_live}, do not let agent {sender} reach agent {receiver}; a "
            "connected topology and enough hops are required, since a request must reach every agent"
        )
    if time_to_live is None:
        # No message travels further than to the furthest agent.
        limits = hops.max(axis=1)
        _, traversals = flood(edges, none, none, limits, nodes)
    if cliques:
        for own, reached in zip(hops, hops >= 0, strict=True):
            clique = clique_cover(reached)
            own *= clique[:, np.newaxis] == clique
    return edges, limits, hops, traversals


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
