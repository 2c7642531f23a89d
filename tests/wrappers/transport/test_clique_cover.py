"""Clique covers, checked on the distances that networkx finds."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers.transport.network import Network, Topology, clique_cover


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


@pytest.mark.parametrize("graph", [nx.complete_graph(7), nx.path_graph(7), nx.cycle_graph(7)])
def test_within_the_diameter_all_are_one_clique_and_an_edgeless_graph_has_one_each(graph):
    assert not cliques_of(graph, 7, nx.diameter(graph)).any()
    assert not cliques_of(graph, 7, nx.diameter(graph) + 3).any()
    assert sorted(cliques_of(nx.empty_graph(7), 7, 3)) == list(range(7))


def test_pairs_must_reach_each_other_both_ways():
    one_way = nx.cycle_graph(4, nx.DiGraph)
    # Back takes 3 hops.
    assert cliques_of(one_way, 4, 2).tolist() != [0, 0, 0, 0]
    assert_covers(cliques_of(one_way, 4, 2), distances(one_way, 4), 2)
    assert cliques_of(one_way, 4, 1).max() == 3
    assert not cliques_of(one_way, 4, 3).any()


GRAPHS = {
    "star": lambda seed: nx.star_graph([6, 0, 1, 2, 3, 4, 5]),
    "line": lambda seed: nx.path_graph(6),
    "one way": lambda seed: nx.cycle_graph(6, nx.DiGraph),
    "edgeless": lambda seed: nx.empty_graph(6),
    "drawn": lambda seed: nx.from_numpy_array(
        Topology({"name": "erdos_renyi", "probability": 0.3}, range(6)).adjacency(
            stream(seed, Purpose.CHANNEL, 0)
        )
    ),
}
SPECS = {
    "star": "star",
    "line": "line",
    "one way": nx.cycle_graph(6, nx.DiGraph),
    "edgeless": {"edges": []},
    "drawn": {"name": "erdos_renyi", "probability": 0.3},
}


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_networks_hear_their_clique_and_pay_for_floods(name, gamma):
    seeds = [1, 2, 3, 4]
    everybody = np.ones((4, 6), bool)
    carried = []
    for cliques in (True, False):
        network = Network(Topology(SPECS[name], range(6)), gamma, 0.0, 0.0, cliques, False)
        carried.append(network.in_episodes(seeds).carry(everybody, 1))
    (hops, traversals), (all_hops, all_traversals) = carried
    np.testing.assert_array_equal(traversals, all_traversals)
    for replica, seed in enumerate(seeds):
        away = distances(GRAPHS[name](seed), 6)
        clique = clique_cover(away <= gamma)
        assert_covers(clique, away, gamma)
        # Entry (receiver, sender).
        heard = hops[replica] > 0
        np.testing.assert_array_equal(heard, (clique[:, None] == clique) & ~np.eye(6, dtype=bool))
        np.testing.assert_array_equal(hops[replica][heard], away.T[heard])
        np.testing.assert_array_equal(hops[replica][heard], all_hops[replica][heard])
