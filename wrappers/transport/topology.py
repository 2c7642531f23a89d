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
| `star` | | a controller, which is no agent, passes messages on between all agents |
| `line` | | each agent receives messages from the one before and the one after it |
| `ring` | | a line whose ends receive messages from each other |
| `erdos_renyi` | `probability` | drawn: each pair of agents is joined with that probability, independently |
| `random_regular` | `degree` | drawn (nearly) uniformly from all in which each agent has that number of neighbours |
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import getfullargspec
from typing import Any

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array


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
"""Functions of the number of agents and a generator that return graphs, by the name in a specification. Those with a
keyword argument draw a graph, the others always return the same."""


class Topology:
    """The graph between the agents of a federation, fixed or drawn anew for each replica and episode.

    Attributes:
        num_agents: Number of agents.
        fixed: The graph; None where graphs are drawn.
        drawn: Whether each replica and episode has a graph of its own.
        relays: Number of nodes that are no agents.

    Example:
        >>> ring = Topology("ring", ["agent_0", "agent_1", "agent_2", "agent_3"])
        >>> ring.fixed.astype(int).tolist()
        [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    """

    def __init__(self, spec: str | Mapping[str, Any] | nx.Graph, agents: Sequence[str]) -> None:
        """Reads a specification; see the module for its forms.

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
            # Drawn once in any case: so bad arguments are errors now.
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
        """Returns a graph, bool ``(nodes, nodes)``; ``generator`` is used only where graphs are drawn."""
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
    # Without weights: an edge is an edge, whatever it weighs.
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
