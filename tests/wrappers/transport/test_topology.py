"""Topologies: who hears whom, what is drawn, and what is refused; clique covers, checked on networkx's distances."""

import json
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals

from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers.transport.channel import clique_cover, explore, make_topology

DRAWN = {"name": "erdos_renyi", "probability": 0.3}


def graph_of(spec, num_agents: int = 6, seed: int = 0) -> np.ndarray:
    graph = make_topology(spec, num_agents)
    return graph(stream(seed, Purpose.CHANNEL, 0)) if callable(graph) else graph


@pytest.mark.parametrize("num_agents", [1, 2, 3, 6])
def test_named_graphs_and_no_edges(num_agents):
    for specs, reference in (
        (["complete", {"name": "complete"}], nx.complete_graph(num_agents)),
        (["ring", {"name": "ring"}], nx.cycle_graph(num_agents)),
        (["line", {"name": "line"}], nx.path_graph(num_agents)),
        ([{"edges": []}, nx.empty_graph(num_agents)], nx.empty_graph(num_agents)),
    ):
        expected = nx.to_numpy_array(reference) > 0
        np.fill_diagonal(expected, False)
        for spec in specs:
            assert np.array_equal(graph_of(spec, num_agents), expected)


def test_the_stars_controller_is_no_agent():
    adjacency = graph_of("star")
    assert adjacency.shape == (7, 7)
    assert not adjacency[:6, :6].any()
    assert adjacency[6, :6].all()
    assert adjacency[:6, 6].all()
    assert not adjacency[6, 6]


def test_graphs_given_as_edges_or_networkx_graph():
    edges = [[0, 1], [1, 2], [4, 2]]
    undirected = nx.Graph(edges)
    undirected.add_nodes_from(range(6))
    expected = nx.to_numpy_array(undirected, nodelist=range(6)) > 0
    named = nx.relabel_nodes(undirected, {node: f"agent_{node}" for node in range(6)})
    weighted = nx.Graph(undirected)
    nx.set_edge_attributes(weighted, 0.0, "weight")
    given = json.loads(json.dumps({"edges": edges}))
    for graph in (given, undirected, named, weighted, nx.MultiGraph(undirected)):
        assert np.array_equal(graph_of(graph), expected)
    one_way = np.roll(np.eye(3, dtype=bool), 1, axis=1)
    assert np.array_equal(graph_of(nx.DiGraph([(0, 1), (1, 2), (2, 0)]), 3), one_way)


def test_erdos_renyi_has_its_probability():
    draw = pickle.loads(pickle.dumps(make_topology(DRAWN, 6)))
    graphs = [draw(stream(seed, Purpose.CHANNEL, 0)) for seed in range(1000)]
    for graph in graphs:
        assert np.array_equal(graph, graph.T)
        assert not graph.diagonal().any()
    edges = np.array([graph[np.triu_indices(6, 1)] for graph in graphs])
    # Each of 15 pairs is binomial over 1000 graphs, deviation 0.0145; 5 of these: 15 x 6e-7 false alarms.
    assert edges.mean(axis=0) == pytest.approx(0.3, abs=5 * 0.0145)
    assert not graph_of({"name": "erdos_renyi", "probability": 0}).any()
    assert np.array_equal(graph_of({"name": "erdos_renyi", "probability": 1.0}), graph_of("complete"))


test_bad_specifications_are_named = refusals(
    lambda spec: make_topology(spec, 6),
    ("torus", ValueError, r"topology name is 'torus'; one of \['complete', 'erdos_renyi',"),
    ({"name": "ring", "probability": 0.1}, TypeError, "topology 'ring' with arguments {'probability'"),
    ("erdos_renyi", TypeError, r"topology 'erdos_renyi' with arguments \{\}"),
    ({}, ValueError, "topology name is None"),
    (3, TypeError, "topology is 3"),
    ({"name": "erdos_renyi", "probability": 1.1}, ValueError, r"probability is 1.1; a number in \[0, 1\]"),
    ({"name": "erdos_renyi", "probability": "a"}, TypeError, "probability is 'a'"),
    ({"edges": [[0, 6]]}, ValueError, "a graph of 7 nodes"),
    ({"edges": [3]}, TypeError, r"has no len\(\)"),
    ({"edges": [[2, 2]]}, ValueError, "self-loop at agent 2"),
    (nx.cycle_graph(5), ValueError, "a graph of 5 nodes"),
    (nx.grid_2d_graph(2, 3), ValueError, "networkx.convert_node_labels_to_integers"),
)


def distances(graph: nx.Graph, num_agents: int) -> np.ndarray:
    """Hops from row to column, infinite where there is no path; nodes after the agents only pass on."""
    hops = np.full((num_agents, num_agents), np.inf)
    for source, lengths in nx.all_pairs_shortest_path_length(graph):
        for target, length in lengths.items():
            if source < num_agents and target < num_agents:
                hops[source, target] = length
    return hops


def cliques_of(graph: nx.Graph, num_agents: int, gamma: int) -> np.ndarray:
    return clique_cover(distances(graph, num_agents) <= gamma)


def assert_covers(clique, hops, gamma):
    """Every agent is in one clique, and everybody in it is near, both ways."""
    assert clique.shape == (len(hops),)
    assert set(clique) == set(range(clique.max() + 1))
    together = clique[:, np.newaxis] == clique
    assert (hops[together] <= gamma).all()
    assert (hops.T[together] <= gamma).all()


@settings(max_examples=150)
@given(
    num_agents=st.integers(1, 14),
    probability=st.sampled_from([0.0, 0.1, 0.2, 0.4, 0.8]),
    directed=st.booleans(),
    gamma=st.integers(1, 5),
    seed=st.integers(0, 10**6),
)
def test_whoever_shares_a_clique_is_within_reach(num_agents, probability, directed, gamma, seed):
    graph = nx.gnp_random_graph(num_agents, probability, seed=seed, directed=directed)
    clique = cliques_of(graph, num_agents, gamma)
    hops = distances(graph, num_agents)
    assert_covers(clique, hops, gamma)
    # Greedy colouring leaves no clique that could join another one whole.
    near = np.maximum(hops, hops.T) <= gamma
    for a in range(clique.max() + 1):
        for b in range(a):
            assert not near[np.ix_(clique == a, clique == b)].all()


@pytest.mark.parametrize("num_agents", [*range(1, 40), 99, 100])
def test_a_line_of_neighbours_has_as_few_cliques_as_it_can(num_agents):
    assert cliques_of(nx.path_graph(num_agents), num_agents, 1).max() + 1 == -(-num_agents // 2)


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        ("star", nx.star_graph([6, 0, 1, 2, 3, 4, 5])),
        ("line", nx.path_graph(6)),
        (nx.cycle_graph(6, nx.DiGraph), nx.cycle_graph(6, nx.DiGraph)),
        ({"edges": []}, nx.empty_graph(6)),
        (DRAWN, None),
    ],
)
def test_networks_hear_their_clique_and_pay_for_floods(spec, reference, gamma):
    graphs = [graph_of(spec, seed=seed) for seed in range(1, 5)]
    (*_, hops, traversals), (*_, all_hops, all_traversals) = (
        explore(np.stack(graphs), 6, gamma, cliques, False) for cliques in (True, False)
    )
    np.testing.assert_array_equal(traversals, all_traversals)
    for replica, graph in enumerate(graphs):
        away = distances(reference or nx.from_numpy_array(graph), 6)
        clique = clique_cover(away <= gamma)
        assert_covers(clique, away, gamma)
        # Entry (receiver, sender).
        heard = hops[replica] > 0
        np.testing.assert_array_equal(heard, (clique[:, None] == clique) & ~np.eye(6, dtype=bool))
        np.testing.assert_array_equal(hops[replica][heard], away.T[heard])
        np.testing.assert_array_equal(hops[replica][heard], all_hops[replica][heard])
