"""Topologies: graphs between agents that are fixed, drawn anew in each episode, or a star with a controller.

A graph is an adjacency matrix, bool ``(nodes, nodes)``: entry (u, v) is true if v receives messages from u. Agents come
first, in their order; nodes after them only pass messages on. Specifications can be written as JSON, except networkx
graphs:

* a name, ``"ring"``, or a mapping of the name and the arguments,
  ``{"name": "erdos_renyi", "probability": 0.3}``;
* ``{"edges": [[0, 1], [1, 2]]}``: pairs of agents that receive messages from each other;
* ``{"adjacency": [[0, 1], [0, 0]]}``: the matrix, which may be asymmetric;
* a networkx graph, undirected or directed, whose nodes are the agents' numbers or names.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array


def complete(num_agents: int) -> Array:
    """Returns the graph in which each agent receives messages from every other."""
    return ~np.eye(num_agents, dtype=np.bool_)


def star(num_agents: int) -> Array:
    """Returns the graph in which a controller, which is no agent, passes messages on between all agents."""
    adjacency = np.zeros((num_agents + 1, num_agents + 1), np.bool_)
    adjacency[-1, :-1] = adjacency[:-1, -1] = True
    return adjacency


def line(num_agents: int) -> Array:
    """Returns the graph in which each agent receives messages from the one before and the one after it."""
    return np.eye(num_agents, k=1, dtype=np.bool_) | np.eye(num_agents, k=-1, dtype=np.bool_)


def ring(num_agents: int) -> Array:
    """Returns a line whose ends receive messages from each other."""
    adjacency = line(num_agents)
    if num_agents > 1:
        adjacency[0, -1] = adjacency[-1, 0] = True
    return adjacency


def erdos_renyi(num_agents: int, generator: np.random.Generator, *, probability: float) -> Array:
    """Returns a graph in which each pair of agents is joined with the same probability, independently."""
    upper = np.triu(generator.random((num_agents, num_agents)) < probability, k=1)
    return upper | upper.T


def random_regular(num_agents: int, generator: np.random.Generator, *, degree: int) -> Array:
    """Returns a graph in which each agent has ``degree`` neighbours, drawn (nearly) uniformly from all such graphs."""
    graph = nx.random_regular_graph(degree, num_agents, seed=int(generator.integers(2**32)))
    return _adjacency_of(graph, range(num_agents))


_FIXED: dict[str, Callable[[int], Array]] = {"complete": complete, "star": star, "ring": ring, "line": line}
_DRAWN: dict[str, tuple[Callable[..., Array], str]] = {
    "erdos_renyi": (erdos_renyi, "probability"),
    "random_regular": (random_regular, "degree"),
}

TOPOLOGIES: dict[str, Callable[..., Array]] = {**_FIXED, **{name: draw for name, (draw, _) in _DRAWN.items()}}
"""The functions that return graphs, by the name in a specification."""


class Topology:
    """The graph between the agents of a federation, fixed or drawn anew for each replica and episode.

    Attributes:
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
        self._num_agents = len(agents)
        self.fixed: Array | None = None
        self._draw: Callable[[int, np.random.Generator], Array] | None = None
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
        self.relays = 0 if self.fixed is None else len(self.fixed) - self._num_agents

    def _read(self, spec: dict[str, Any]) -> None:
        name = str(spec.get("name"))
        if spec.keys() == {"edges"}:
            self.fixed = _from_edges(spec["edges"], self._num_agents)
        elif spec.keys() == {"adjacency"}:
            self.fixed = _from_matrix(spec["adjacency"], self._num_agents)
        elif name in _FIXED and spec.keys() == {"name"}:
            self.fixed = _FIXED[name](self._num_agents)
        elif name in _DRAWN and spec.keys() == {"name", _DRAWN[name][1]}:
            draw, parameter = _DRAWN[name]
            _check_parameter(parameter, spec[parameter], self._num_agents)
            self._draw = partial(draw, **{parameter: spec[parameter]})
        else:
            drawn = ", ".join(
                f"{{'name': {one!r}, {argument!r}: ...}}" for one, (_, argument) in _DRAWN.items()
            )
            raise ValueError(
                f"topology is {spec}; one of the names {sorted(_FIXED)}, {drawn}, {{'edges': ...}} or "
                "{'adjacency': ...} is required"
            )

    def adjacency(self, generator: np.random.Generator) -> Array:
        """Returns a graph, bool ``(nodes, nodes)``; ``generator`` is used only where graphs are drawn."""
        if self._draw is not None:
            return self._draw(self._num_agents, generator)
        assert self.fixed is not None
        return self.fixed


def _check_parameter(name: str, value: Any, num_agents: int) -> None:
    if name == "probability":
        if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
            raise ValueError(f"probability is {value!r}; a number in [0, 1] is required")
    elif not isinstance(value, int | np.integer) or not 0 <= value < num_agents or value * num_agents % 2:
        raise ValueError(
            f"degree is {value!r}; an integer >= 0 below the number of agents, {num_agents}, whose product "
            "with it is even is required"
        )


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
