"""Topologies: who hears whom, what is drawn, and what is refused."""

import json
import pickle
import re

import networkx as nx
import numpy as np
import pytest

from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers.transport.network import Topology, edge_lists

AGENTS = [f"agent_{j}" for j in range(6)]


def graph_of(spec, num_agents: int = 6, seed: int = 0) -> np.ndarray:
    topology = Topology(spec, AGENTS[:num_agents])
    return topology.adjacency(stream(seed, Purpose.CHANNEL, 0))


@pytest.mark.parametrize(
    ("name", "reference"),
    [("complete", nx.complete_graph), ("ring", nx.cycle_graph), ("line", nx.path_graph)],
)
@pytest.mark.parametrize("num_agents", [2, 3, 6])
def test_named_graphs(name, reference, num_agents):
    expected = nx.to_numpy_array(reference(num_agents)) > 0
    np.fill_diagonal(expected, False)
    assert np.array_equal(graph_of(name, num_agents), expected)
    assert np.array_equal(graph_of({"name": name}, num_agents), expected)


@pytest.mark.parametrize("name", ["complete", "ring", "line"])
def test_one_agent_hears_nobody(name):
    assert not graph_of(name, 1).any()


def test_the_stars_controller_is_no_agent():
    topology = Topology("star", AGENTS)
    assert (topology.relays, topology.drawn) == (1, False)
    adjacency = graph_of("star")
    assert adjacency.shape == (7, 7)
    assert not adjacency[:6, :6].any()
    assert adjacency[6, :6].all()
    assert adjacency[:6, 6].all()
    assert not adjacency[6, 6]


def test_graphs_given_as_edges_matrix_or_networkx_graph():
    edges = [[0, 1], [1, 2], [4, 2]]
    undirected = nx.Graph(edges)
    undirected.add_nodes_from(range(6))
    expected = nx.to_numpy_array(undirected, nodelist=range(6)) > 0
    matrix = expected.astype(int).tolist()
    for spec in ({"edges": edges}, {"adjacency": matrix}):
        assert np.array_equal(graph_of(json.loads(json.dumps(spec))), expected)
    named = nx.relabel_nodes(undirected, dict(enumerate(AGENTS)))
    weighted = nx.Graph(undirected)
    nx.set_edge_attributes(weighted, 0.0, "weight")
    for graph in (undirected, named, weighted, nx.MultiGraph(undirected)):
        assert np.array_equal(graph_of(graph), expected)
    directed = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
    one_way = np.roll(np.eye(3, dtype=bool), 1, axis=1)
    assert np.array_equal(graph_of(directed, 3), one_way)
    assert np.array_equal(graph_of({"adjacency": one_way.astype(int).tolist()}, 3), one_way)


@pytest.mark.parametrize("num_agents", [1, 6])
def test_graphs_without_edges(num_agents):
    none = np.zeros((num_agents, num_agents), bool)
    for spec in ({"edges": []}, {"adjacency": none.tolist()}, nx.empty_graph(num_agents)):
        assert np.array_equal(graph_of(spec, num_agents), none)
    assert edge_lists([none, none]).shape == (2, 0, 3)


def test_erdos_renyi_has_its_probability():
    topology = Topology({"name": "erdos_renyi", "probability": 0.3}, AGENTS)
    assert topology.drawn
    graphs = [topology.adjacency(stream(seed, Purpose.CHANNEL, 0)) for seed in range(1000)]
    for graph in graphs:
        assert np.array_equal(graph, graph.T)
        assert not graph.diagonal().any()
    edges = np.array([graph[np.triu_indices(6, 1)] for graph in graphs])
    # Each of 15 pairs is binomial over 1000 graphs, deviation 0.0145; 5 of these: 15 x 6e-7 false alarms.
    assert edges.mean(axis=0) == pytest.approx(0.3, abs=5 * 0.0145)
    assert not graph_of({"name": "erdos_renyi", "probability": 0}).any()
    assert np.array_equal(graph_of({"name": "erdos_renyi", "probability": 1.0}), graph_of("complete"))


@pytest.mark.parametrize("degree", [0, 2, 3, 5])
def test_random_regular_graphs_have_their_degree(degree):
    spec = {"name": "random_regular", "degree": degree}
    graphs = [graph_of(spec, seed=seed) for seed in range(20)]
    for graph in graphs:
        assert np.array_equal(graph, graph.T)
        assert (graph.sum(axis=0) == degree).all()
        assert not graph.diagonal().any()
    # Of degree 2 and 3 there are 70 graphs on 6 nodes each; of degree 0 and 5 there is one.
    assert len({graph.tobytes() for graph in graphs}) >= (1 if degree in (0, 5) else 10)
    assert np.array_equal(graphs[3], graph_of(spec, seed=3))


@pytest.mark.parametrize(
    "spec", ["star", {"name": "random_regular", "degree": 3}, nx.cycle_graph(6)], ids=str
)
def test_topologies_pickle(spec):
    topology = Topology(spec, AGENTS)
    twin = pickle.loads(pickle.dumps(topology))
    assert np.array_equal(
        twin.adjacency(stream(1, Purpose.CHANNEL)), topology.adjacency(stream(1, Purpose.CHANNEL))
    )


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("torus", ValueError, "topology is {'name': 'torus'}; one of the names ['complete', 'line',"),
        ({"name": ["ring"]}, ValueError, "topology is {'name': ['ring']}"),
        ({"name": "ring", "probability": 0.1}, ValueError, "topology is {'name': 'ring', 'probability'"),
        ("erdos_renyi", ValueError, "{'name': 'erdos_renyi', 'probability': ...}"),
        ({}, ValueError, "topology is {}"),
        (3, TypeError, "topology is 3"),
        (None, TypeError, "topology is None"),
        ({"name": "erdos_renyi", "probability": 1.1}, ValueError, "probability is 1.1; a number in [0, 1]"),
        ({"name": "erdos_renyi", "probability": float("nan")}, ValueError, "probability is nan"),
        ({"name": "erdos_renyi", "probability": "a"}, ValueError, "probability is 'a'"),
        ({"name": "random_regular", "degree": 6}, ValueError, "degree is 6; an integer >= 0 below"),
        ({"name": "random_regular", "degree": -1}, ValueError, "degree is -1"),
        ({"name": "random_regular", "degree": 2.0}, ValueError, "degree is 2.0"),
        ({"edges": [[0, 6]]}, ValueError, "edge [0, 6]; pairs of 0 to 5"),
        ({"edges": [[0, -1]]}, ValueError, "edge [0, -1]"),
        ({"edges": [[0, 1, 2]]}, ValueError, "edge [0, 1, 2]"),
        ({"edges": [3]}, ValueError, "edge 3"),
        ({"edges": [[2, 2]]}, ValueError, "self-loop at agent 2"),
        ({"adjacency": [[0, 1], [1, 0]]}, ValueError, "adjacency of shape (2, 2); (6, 6)"),
        ({"adjacency": np.eye(6).tolist()}, ValueError, "self-loop at agent 0"),
        ({"adjacency": np.full((6, 6), 0.5).tolist()}, ValueError, "entries 0 or 1"),
        (nx.cycle_graph(5), ValueError, "a graph of 5 nodes"),
        (nx.grid_2d_graph(2, 3), ValueError, "networkx.convert_node_labels_to_integers"),
        (nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 5)]), ValueError, "self-loop at agent 5"),
    ],
)
def test_bad_specifications_are_named(spec, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Topology(spec, AGENTS)


def test_regular_graphs_need_an_even_sum_of_degrees():
    with pytest.raises(ValueError, match="degree is 3; an integer >= 0 below the number of agents, 5"):
        Topology({"name": "random_regular", "degree": 3}, AGENTS[:5])
