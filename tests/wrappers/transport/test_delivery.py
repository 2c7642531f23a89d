"""Where messages get to, when, and at what cost: against the simulation of single messages."""

import networkx as nx
import numpy as np
import pytest
from channels import (
    BYTES,
    GRAPHS,
    NAMES,
    PRODUCERS,
    assert_same,
    buying,
    graph_of,
    private,
    run_of,
    seen,
    small,
)
from flooding_reference import SlowNetwork
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import every_pair, every_second
from played import begun

from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.wrappers.transport.channel import Channel, clique_cover

LEAST = 8
"""More where delays are long: so many that a message of the first round crosses every graph, in four hops."""


def hearing(graph, num_agents, gamma):
    """Whom each agent takes in, bool (agents, senders): all, or its clique in the power graph."""
    if gamma is None:
        return np.ones((num_agents, num_agents), bool)
    near = np.eye(num_agents, dtype=bool)
    for source, lengths in nx.all_pairs_shortest_path_length(graph, cutoff=gamma):
        for target in lengths:
            if source < num_agents and target < num_agents:
                near[source, target] = True
    clique = clique_cover(near)
    return clique[:, np.newaxis] == clique


def assert_equals_reference(graph, delay, time_to_live, loss, duplication, seeds, echo=False, cliques=False):
    """Random sending, compared in every round with one simulation of single messages a replica."""
    num_agents, topology, reference = graph
    env = Channel(
        small(num_agents), topology, "on_request", delay, time_to_live, loss, duplication, echo, cliques
    )
    raw = small(num_agents)
    env.reset_batch(seeds)
    raw.reset_batch(seeds)
    networks = [
        SlowNetwork(
            graph_of(topology, reference, num_agents, seed),
            num_agents, seed, delay, time_to_live, loss, duplication,
        )
        for seed in seeds
    ]  # fmt: skip
    hears = [hearing(network.graph, num_agents, time_to_live if cliques else None) for network in networks]
    luck = np.random.default_rng(3)
    total = np.zeros((len(seeds), num_agents), np.int64)
    for t in range(1, max(LEAST, 4 * (delay + 1)) + 1):
        send = luck.random((len(seeds), num_agents)) < 0.4
        action = luck.integers(0, 9, (len(seeds), num_agents, PRODUCERS))
        step = env.step_batch({"action": action, "send": send})
        raw.step_batch(action)
        statistic = raw.release(send)
        shape = (len(seeds), num_agents, num_agents)
        mask, traffic = np.zeros(shape, bool), np.zeros(shape[:2], np.int64)
        inbox = {name: np.zeros((*shape, PRODUCERS)) for name in NAMES}
        for r, network in enumerate(networks):
            released = {
                j: {name: statistic[name][r, j].astype(float) for name in NAMES}
                for j in np.flatnonzero(send[r]).tolist()
            }
            delivered, sent = network.play(t, released)
            delivered = [entry for entry in delivered if hears[r][entry[0], entry[1]]]
            if echo:
                delivered += [(sender, sender, vectors) for sender, vectors in released.items()]
            for receiver, sender, vectors in delivered:
                mask[r, receiver, sender] = True
                for name in NAMES:
                    inbox[name][r, receiver, sender] += vectors[name]
            for sender, count in sent.items():
                traffic[r, sender] = count
        total += traffic
        shown = seen(step.observation)
        np.testing.assert_array_equal(shown["inbox_mask"], mask)
        assert ("sent" in step.observation) == echo
        if echo:
            np.testing.assert_array_equal(step.observation["sent"], send[..., np.newaxis])
        for name in NAMES:
            np.testing.assert_array_equal(shown[f"inbox_{name}"], inbox[name])
        np.testing.assert_array_equal(step.info["messages"], traffic)
        np.testing.assert_array_equal(step.info["bytes"], traffic * BYTES)
    np.testing.assert_array_equal(env.traffic["messages"], total)
    np.testing.assert_array_equal(env.traffic["bytes"], total * BYTES)


@pytest.mark.parametrize(
    ("graph", "delay", "time_to_live"), every_pair(sorted(GRAPHS), [0, 1, 3], [None, 1, 2, 20])
)
def test_delivery_equals_single_messages(graph, delay, time_to_live):
    if graph == "star" and time_to_live == 1:
        time_to_live = 3
    assert_equals_reference(GRAPHS[graph], delay, time_to_live, 0.0, 0.0, [4, 5])


@pytest.mark.parametrize(
    ("graph", "delay", "faults", "echo"),
    every_second(
        every_pair(sorted(GRAPHS), [0, 2], [(0.0, 0.0), (0.4, 0.0), (0.0, 0.4), (0.3, 0.3)], [False, True])
    ),
)
def test_delivery_under_faults_equals_single_messages(graph, delay, faults, echo):
    for time_to_live, seed in ((None, 4), (6, 5)):
        assert_equals_reference(GRAPHS[graph], delay, time_to_live, *faults, [seed], echo)


@pytest.mark.parametrize(
    ("graph", "delay", "faults", "echo"),
    every_pair(sorted(GRAPHS), [0, 2], [(0.0, 0.0), (0.3, 0.3)], [False, True]),
)
def test_delivery_to_cliques_equals_single_messages(graph, delay, faults, echo):
    for time_to_live, seed in ((2, 4), (3, 5)):
        assert_equals_reference(GRAPHS[graph], delay, time_to_live, *faults, [seed], echo, cliques=True)


def play_to_accumulate(env, seeds, sending, silent_rounds):
    """Everybody sends in each of the first rounds, then nobody, until everything has arrived."""
    num_agents = env.max_num_agents
    observation, _ = env.reset_batch(seeds)
    received = {name: np.zeros_like(observation[f"inbox_{name}"]) for name in NAMES}
    luck = np.random.default_rng(0)
    capacity = observation["capacity"].copy()
    released = None
    for t in range(sending + silent_rounds):
        send = np.full((len(seeds), num_agents), t < sending)
        action = luck.integers(0, capacity + 1)
        observation = seen(env.step_batch({"action": action, "send": send}).observation)
        if t < sending:
            released = {name: observation[f"total_{name}"].astype(float) for name in NAMES}
        for name in NAMES:
            inbox = observation[f"inbox_{name}"]
            assert np.isfinite(inbox).all()
            assert (inbox >= 0).all()
            assert not inbox[~observation["inbox_mask"]].any()
            received[name] += inbox
            # Never more than was released until now.
            assert (received[name] <= released[name][:, np.newaxis]).all()
    return received, released


def connected_graphs():
    def build(num_agents, seed, extra):
        graph = nx.random_labeled_tree(num_agents, seed=seed)
        graph.add_edges_from(
            (u, v) for u, v in nx.gnp_random_graph(num_agents, extra, seed=seed).edges if u != v
        )
        return graph

    return st.builds(build, st.integers(2, 7), st.integers(0, 10**6), st.sampled_from([0.0, 0.2, 0.5]))


@settings(max_examples=25)
@given(
    graph=connected_graphs(),
    delay=st.integers(0, 6),
    duplication=st.sampled_from([0.0, 0.3, 0.9]),
    seed=st.integers(0, 2**64),
)
def test_everything_released_arrives_everywhere_exactly_once(graph, delay, duplication, seed):
    num_agents = len(graph)
    env = Channel(small(num_agents), graph, "on_request", delay, duplication=duplication)
    heard, released = play_to_accumulate(env, [seed], 5, num_agents * delay)
    others = ~np.eye(num_agents, dtype=bool)
    for name in NAMES:
        expected = np.where(others[..., np.newaxis], released[name][:, np.newaxis], 0.0)
        np.testing.assert_array_equal(heard[name], expected)


@pytest.mark.parametrize(
    ("num_agents", "topology", "time_to_live", "messages"),
    [
        # Everybody to everybody else.
        (4, "complete", None, [3, 3, 3, 3]),
        # The two who heard it tell each other.
        (3, "complete", 2, [4, 4, 4]),
        # To the controller, and from it to the three others.
        (4, "star", None, [4, 4, 4, 4]),
        # Two ways round, two hops each.
        (5, "ring", None, [4] * 5),
        # Two ways round, three hops each, which meet at the opposite agent.
        (6, "ring", None, [6] * 6),
        (6, "ring", 1, [2] * 6),
        (6, "ring", 2, [4] * 6),
        # Two ways round; when they meet, each passes on what the other has: a hop more, both ways.
        (5, "ring", 5, [6] * 5),
        (3, "line", None, [2, 2, 2]),
        (4, "line", 1, [1, 2, 2, 1]),
        (3, {"edges": [[0, 1]]}, None, [1, 1, 0]),
        (1, "complete", None, [0]),
    ],
)
def test_traffic_by_hand(num_agents, topology, time_to_live, messages):
    env = begun(Channel(small(num_agents), topology, time_to_live=time_to_live), [0, 1])
    for played in (1, 2):
        step = env.step_batch(buying(env, 2))
        assert step.info["messages"].dtype == step.info["bytes"].dtype == np.int64
        assert step.info["messages"].tolist() == [messages] * 2
        assert step.info["bytes"].tolist() == [[count * BYTES for count in messages]] * 2
        assert env.traffic["messages"].tolist() == [[played * count for count in messages]] * 2


def test_faults_do_not_depend_on_who_sends_or_on_duplication():
    def run(send, duplication):
        env = begun(Channel(small(5), "ring", "on_request", loss=0.4, duplication=duplication), [3])
        masks = []
        for _ in range(20):
            step = env.step_batch({"action": buying(env), "send": np.array([send])})
            masks.append(step.observation["inbox_mask"][0, :, 2].copy())
        return np.array(masks)

    everybody = run([1, 1, 1, 1, 1], 0.0)
    assert 0.1 < everybody.mean() < 0.8
    assert np.array_equal(everybody, run([0, 0, 1, 0, 0], 0.0))
    assert np.array_equal(everybody, run([1, 0, 1, 1, 0], 0.9))


def test_rates_of_loss_and_duplication():
    """On a complete graph each of 12 pairs has a single path, so what is lost is lost."""
    env = begun(Channel(small(4), loss=0.3, duplication=0.2), range(20))
    arrived, messages, rounds = np.zeros((20, 4, 4)), 0, 50
    for _ in range(rounds):
        step = env.step_batch(buying(env, 20))
        arrived += step.observation["inbox_mask"]
        messages += step.info["messages"].sum()
    paths = 20 * rounds * 12
    # Binomial with n = 12,000: deviations 0.0042 and (among what is not lost) 0.0044. Bounds of 5 of them
    # have a false-alarm rate of 6e-7 each, and seeds are fixed.
    assert arrived.sum() / paths == pytest.approx(0.7, abs=5 * 0.0042)
    assert (messages - paths) / arrived.sum() == pytest.approx(0.2, abs=5 * 0.0044)
    # Each pair by itself: n = 1000, deviation 0.0145, 12 pairs.
    pairs = arrived.sum(axis=0)[~np.eye(4, dtype=bool)] / (20 * rounds)
    assert pairs == pytest.approx(0.7, abs=5 * 0.0145)


@pytest.mark.parametrize("delay", [0, 3])
def test_an_echo_is_what_others_hear_at_once_and_for_free(delay):
    arguments = {"schedule": {"name": "fixed_gap", "gap": 5}, "delay": delay, "loss": 0.3}
    with_echo = run_of(Channel(private(small()), echo=True, **arguments), [0, 1], 20)
    without = run_of(Channel(private(small()), **arguments), [0, 1], 20)
    own = np.arange(4)
    echoes = {}
    told = (*NAMES, *map(variance_of, NAMES))
    for t, (step, plain) in enumerate(zip(with_echo, without, strict=True), start=1):
        assert (step["inbox_mask"][:, own, own] == (t % 5 == 0)).all()
        if t % 5 == 0:
            echoes[t] = {name: step[f"inbox_{name}"][:, own, own].copy() for name in told}
        for name in told:
            heard = plain["inbox_mask"]
            if heard.any():
                np.testing.assert_array_equal(
                    step[f"inbox_{name}"][heard],
                    np.broadcast_to(echoes[t - delay][name][:, np.newaxis], (2, 4, 4, PRODUCERS))[heard],
                )
            step[f"inbox_{name}"][:, own, own] = 0
        step["inbox_mask"][:, own, own] = False
        sent = step.pop("sent")
        assert (sent == (t % 5 == 0)).all()
        np.testing.assert_array_equal(step.pop("inbox_own"), sent & np.eye(4, dtype=bool))
        # But for the echoes, all is as without: inboxes, traffic, budgets.
        assert_same(step, plain)
    assert len(echoes) == 4
