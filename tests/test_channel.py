"""The channel: what is delivered, when, to whom, at what cost, and what is refused."""

import json
import pickle
import re

import networkx as nx
import numpy as np
import pytest
from flooding_reference import SlowNetwork
from gymnasium.error import ResetNeeded
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import parallel_api_test, parallel_seed_test

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.streams import Purpose, stream
from fedbandit_envs.views.control import Control
from fedbandit_envs.wrappers.channel import HEADER_BYTES, Channel
from fedbandit_envs.wrappers.clique_cover import clique_cover
from fedbandit_envs.wrappers.fixed_schedules import FixedSchedule
from fedbandit_envs.wrappers.privatizers.budget import BudgetExhaustedError
from fedbandit_envs.wrappers.privatizers.gaussian import GaussianPrivatizer
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.topology import Topology

PRODUCERS = 3
NAMES = ("delivered", "good")
BYTES = HEADER_BYTES + 8 * 2 * PRODUCERS


def small(num_agents: int = 4, **kwargs) -> ProcurementEnv:
    return ProcurementEnv(
        num_agents=num_agents, num_producers=PRODUCERS, market_seed=1, **{"max_cycles": 60, **kwargs}
    )


def private(env, epsilon: float = 0.9, **kwargs) -> GaussianPrivatizer:
    return GaussianPrivatizer(env, epsilon, **kwargs)


def buying(env, replicas: int = 1) -> np.ndarray:
    return np.ones((replicas, env.max_num_agents, PRODUCERS), np.int64)


LEVELS = {
    "plain": lambda: Channel(small()),
    "private": lambda: Channel(private(small())),
    "requests": lambda: Channel(private(small()), schedule="on_request"),
    "faults": lambda: Channel(small(), "ring", {"name": "fixed_gap", "gap": 3}, 2, None, 0.3, 0.3),
    "drawn": lambda: Channel(small(), {"name": "erdos_renyi", "probability": 0.5}, delay=1),
    "synchronised": lambda: Channel(private(small()), "star", "synchronise", 1, echo=True),
    "cliques": lambda: Channel(small(), "line", "on_request", 2, 1, echo=True, cliques=True),
    "alone": lambda: Channel(private(small()), {"edges": []}, echo=True),
    "revealed": lambda: Reveal(Channel(Reveal(small()), schedule="on_request")),
}


@pytest.fixture(params=sorted(LEVELS))
def make_level(request):
    return LEVELS[request.param]


def sampled(env, rounds: int, seed: int = 0) -> list[dict]:
    for agent in env.possible_agents:
        env.action_space(agent).seed(seed)
    return [{agent: env.action_space(agent).sample() for agent in env.possible_agents} for _ in range(rounds)]


def rows_of(actions, agents):
    """The array face's form of actions by agent."""
    rows = [actions[agent] for agent in agents]
    if isinstance(rows[0], dict):
        return {name: np.stack([row[name] for row in rows])[np.newaxis] for name in rows[0]}
    return np.stack(rows)[np.newaxis]


def assert_same(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    else:
        np.testing.assert_array_equal(a, b)


def run_of(env, seeds, rounds: int) -> list[dict]:
    """Everything that is observed and told in each round, copied."""
    env.reset_batch(seeds)
    kept = []
    for _ in range(rounds):
        step = env.step_batch(buying(env, len(seeds)))
        kept.append({name: array.copy() for name, array in (step.observation | step.info).items()})
    return kept


def test_parallel_api(make_level):
    parallel_api_test(make_level(), num_cycles=80)


def test_parallel_seed(make_level):
    parallel_seed_test(make_level)


def test_same_seed_same_trajectory(make_level):
    envs = [make_level() for _ in range(2)]
    first, second = (env.reset(seed=5)[0] for env in envs)
    assert_same(first, second)
    for actions in sampled(envs[0], 60):
        for part, twin in zip(*(env.step(actions) for env in envs), strict=True):
            assert_same(part, twin)
    assert not envs[0].agents


def test_both_faces_are_equal(make_level):
    batched, keyed = make_level(), make_level()
    observation, _ = batched.reset_batch([9])
    by_agent, _ = keyed.reset(seed=9)
    agents = keyed.possible_agents
    for actions in [*sampled(keyed, 60), None]:
        for j, agent in enumerate(agents):
            assert by_agent[agent] in keyed.observation_space(agent)
            assert_same(by_agent[agent], {name: array[0, j] for name, array in observation.items()})
        if actions is None:
            break
        step = batched.step_batch(rows_of(actions, agents))
        observation = step.observation
        by_agent, rewards, _, truncated, infos = keyed.step(actions)
        for j, agent in enumerate(agents):
            assert rewards[agent] == step.reward[0, j]
            assert truncated[agent] == step.truncated[0, j]
            assert infos[agent] == {name: array[0, j] for name, array in step.info.items()}


def test_observations_of_the_keyed_face_are_copies():
    env = Channel(small(), schedule={"name": "fixed_gap", "gap": 2})
    env.reset(seed=0)
    actions = {agent: np.ones(PRODUCERS, np.int64) for agent in env.agents}
    env.step(actions)
    kept = env.step(actions)[0]["agent_0"]["inbox_delivered"]
    assert kept.any()
    env.step(actions)
    assert kept.any()


GRAPHS = {
    "complete": (5, "complete", nx.complete_graph(5)),
    "star": (4, "star", nx.star_graph([4, 0, 1, 2, 3])),
    "ring of 5": (5, "ring", nx.cycle_graph(5)),
    "ring of 6": (6, "ring", nx.cycle_graph(6)),
    "line": (5, "line", nx.path_graph(5)),
    "one way": (4, nx.cycle_graph(4, nx.DiGraph), nx.cycle_graph(4, nx.DiGraph)),
    "two parts": (5, {"edges": [[0, 1], [2, 3], [3, 4]]}, nx.Graph([(0, 1), (2, 3), (3, 4)])),
    "edgeless": (3, {"edges": []}, nx.empty_graph(3)),
    "random": (6, {"name": "erdos_renyi", "probability": 0.4}, None),
    "random edgeless": (3, {"name": "erdos_renyi", "probability": 0.0}, None),
    "regular": (6, {"name": "random_regular", "degree": 3}, None),
}


def graph_of(topology, reference, num_agents, seed):
    if reference is not None:
        return reference
    agents = [f"agent_{j}" for j in range(num_agents)]
    adjacency = Topology(topology, agents).adjacency(stream(seed, Purpose.CHANNEL, 0))
    return nx.from_numpy_array(adjacency.astype(int))


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


def assert_equals_reference(
    graph, delay, time_to_live, loss, duplication, seeds, rounds, echo=False, cliques=False
):
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
    for t in range(1, rounds + 1):
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
        np.testing.assert_array_equal(step.observation["inbox_mask"], mask)
        assert ("sent" in step.observation) == echo
        if echo:
            np.testing.assert_array_equal(step.observation["sent"], send[..., np.newaxis])
        for name in NAMES:
            np.testing.assert_array_equal(step.observation[f"inbox_{name}"], inbox[name])
        np.testing.assert_array_equal(step.info["messages"], traffic)
        np.testing.assert_array_equal(step.info["bytes"], traffic * BYTES)
    np.testing.assert_array_equal(env.traffic["messages"], total)
    np.testing.assert_array_equal(env.traffic["bytes"], total * BYTES)


@pytest.mark.parametrize("time_to_live", [None, 1, 2, 20])
@pytest.mark.parametrize("delay", [0, 1, 3])
@pytest.mark.parametrize("graph", sorted(GRAPHS))
def test_delivery_equals_single_messages(graph, delay, time_to_live):
    if graph == "star" and time_to_live == 1:
        time_to_live = 3
    assert_equals_reference(GRAPHS[graph], delay, time_to_live, 0.0, 0.0, [4, 5], 25)


@pytest.mark.parametrize("faults", [(0.4, 0.0), (0.0, 0.4), (0.3, 0.3)], ids=str)
@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("graph", sorted(GRAPHS))
def test_delivery_under_faults_equals_single_messages(graph, delay, faults):
    for time_to_live in (None, 6):
        assert_equals_reference(GRAPHS[graph], delay, time_to_live, *faults, [4, 5], 25)


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("faults", [(0.0, 0.0), (0.3, 0.3)], ids=str)
@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("graph", sorted(GRAPHS))
def test_delivery_to_cliques_equals_single_messages(graph, delay, faults, echo):
    for time_to_live in (2, 3):
        assert_equals_reference(GRAPHS[graph], delay, time_to_live, *faults, [4, 5], 25, echo, cliques=True)


@pytest.mark.parametrize("faults", [(0.0, 0.0), (0.3, 0.3)], ids=str)
@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("graph", sorted(GRAPHS))
def test_delivery_with_echo_equals_single_messages(graph, delay, faults):
    assert_equals_reference(GRAPHS[graph], delay, None, *faults, [4, 5], 25, echo=True)


class Accumulator:
    """The simplest receiver: it only ever adds what arrives."""

    def __init__(self, observation):
        self.heard = {name: np.zeros_like(observation[f"inbox_{name}"]) for name in NAMES}

    def add(self, observation):
        mask = observation["inbox_mask"]
        for name, heard in self.heard.items():
            inbox = observation[f"inbox_{name}"]
            assert np.isfinite(inbox).all()
            assert (inbox >= 0).all()
            assert not inbox[~mask].any()
            heard += inbox


def play_to_accumulate(env, seeds, sending, silent_rounds):
    """Everybody sends in each of the first rounds, then nobody, until everything has arrived."""
    num_agents = env.max_num_agents
    observation, _ = env.reset_batch(seeds)
    receiver = Accumulator(observation)
    luck = np.random.default_rng(0)
    capacity = observation["capacity"].copy()
    released = None
    for t in range(sending + silent_rounds):
        send = np.full((len(seeds), num_agents), t < sending)
        action = luck.integers(0, capacity + 1)
        observation = env.step_batch({"action": action, "send": send}).observation
        receiver.add(observation)
        if t < sending:
            released = {name: observation[f"total_{name}"].astype(float) for name in NAMES}
        for name in NAMES:
            # Never more than was released until now.
            assert (receiver.heard[name] <= released[name][:, np.newaxis]).all()
    return receiver.heard, released


def connected_graphs():
    def build(num_agents, seed, extra):
        graph = nx.random_labeled_tree(num_agents, seed=seed)
        graph.add_edges_from(
            (u, v) for u, v in nx.gnp_random_graph(num_agents, extra, seed=seed).edges if u != v
        )
        return graph

    return st.builds(build, st.integers(2, 7), st.integers(0, 10**6), st.sampled_from([0.0, 0.2, 0.5]))


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=40, deadline=None)
@given(
    topology=st.sampled_from(
        ["complete", "star", "ring", "line", {"name": "erdos_renyi", "probability": 0.4}]
    ),
    delay=st.integers(0, 50),
    loss=st.floats(0.0, 0.3),
    duplication=st.floats(0.0, 0.3),
    time_to_live=st.sampled_from([None, 2, 5]),
    seed=st.integers(0, 2**64),
)
def test_no_fault_plan_makes_a_receiver_hear_more_than_was_said(
    topology, delay, loss, duplication, time_to_live, seed
):
    env = Channel(small(5, max_cycles=300), topology, "on_request", delay, time_to_live, loss, duplication)
    play_to_accumulate(env, [seed, seed + 1], 8, min(5 * delay, 290))


@pytest.mark.parametrize("topology", ["ring", "line"])
def test_time_to_live_1_reaches_neighbours_only(topology):
    env = Channel(small(6), topology, time_to_live=1)
    env.reset_batch([0])
    step = env.step_batch(buying(env))
    reference = nx.cycle_graph(6) if topology == "ring" else nx.path_graph(6)
    assert np.array_equal(step.observation["inbox_mask"][0], nx.to_numpy_array(reference) > 0)


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
    env = Channel(small(num_agents), topology, time_to_live=time_to_live)
    env.reset_batch([0, 1])
    for played in (1, 2):
        step = env.step_batch(buying(env, 2))
        assert step.info["messages"].dtype == step.info["bytes"].dtype == np.int64
        assert step.info["messages"].tolist() == [messages] * 2
        assert step.info["bytes"].tolist() == [[count * BYTES for count in messages]] * 2
        assert env.traffic["messages"].tolist() == [[played * count for count in messages]] * 2


def test_each_hop_takes_its_delay_and_is_counted_when_it_begins():
    env = Channel(small(4), "line", "on_request", delay=3)
    env.reset_batch([0])
    hops = []
    for t in range(1, 14):
        send = np.array([[t == 1, 0, 0, 0]])
        step = env.step_batch({"action": buying(env), "send": send.astype(np.int8)})
        hops.append((step.info["messages"][0, 0], np.flatnonzero(step.observation["inbox_mask"][0, :, 0])))
    heard = {t: agents.tolist() for t, (_, agents) in enumerate(hops, start=1) if agents.size}
    assert heard == {4: [1], 7: [2], 10: [3]}
    assert {t: count for t, (count, _) in enumerate(hops, start=1) if count} == {1: 1, 4: 1, 7: 1}


def test_replica_alone_equals_replica_in_a_batch_under_faults():
    def run(seeds):
        topology = {"name": "erdos_renyi", "probability": 0.5}
        return run_of(Channel(private(small(5)), topology, "every_round", 2, 4, 0.3, 0.3), seeds, 20)

    seeds = [11, 12, 13, 14]
    whole = run(seeds)
    for i, seed in enumerate(seeds):
        for in_whole, alone in zip(whole, run([seed]), strict=True):
            for name in alone:
                np.testing.assert_array_equal(in_whole[name][i], alone[name][0])


def test_information_counts_the_round_s_own_release():
    env = Channel(private(small(3)), schedule={"name": "fixed_gap", "gap": 2})
    env.reset_batch([0])
    for _ in range(6):
        spent = env.step_batch(buying(env)).info["epsilon_spent"]
        np.testing.assert_array_equal(spent, env.privacy().epsilon)


def test_faults_do_not_depend_on_who_sends_or_on_duplication():
    def run(send, duplication):
        env = Channel(small(5), "ring", "on_request", loss=0.4, duplication=duplication)
        env.reset_batch([3])
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
    env = Channel(small(4), loss=0.3, duplication=0.2)
    env.reset_batch(range(20))
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


def test_the_paper_s_schedule_sends_8_messages_to_each_agent():
    env = Channel(small(2, max_cycles=100_000), schedule="doubling")
    env.reset_batch([0])
    action = buying(env)
    times = []
    for t in range(1, 100_001):
        step = env.step_batch(action)
        if step.info["messages"].any():
            times.append(t)
            assert step.observation["inbox_delivered"][0, 0, 1].sum() > 0
        else:
            assert not step.observation["inbox_mask"].any()
    assert times == [2**k for k in range(8, 16)]
    assert env.traffic["messages"].tolist() == [[8, 8]]


def test_silence_releases_nothing_and_draws_nothing(monkeypatch):
    env = Channel(small(), schedule="silent", loss=0.3)
    env.reset_batch([0])
    monkeypatch.setattr("fedbandit_envs.wrappers.network.stream", None)
    monkeypatch.setattr(env.env, "release", None)
    for _ in range(60):
        step = env.step_batch(buying(env))
        assert not step.observation["inbox_mask"].any()
    assert not env.traffic["messages"].any()
    assert env.privacy().epsilon == 0.0


def test_messages_under_way_are_dropped_at_reset():
    env = Channel(small(), "line", delay=2)
    run_of(env, [0], 5)
    assert not env.reset_batch([0])[0]["inbox_mask"].any()
    again, fresh = run_of(env, [0], 10), run_of(Channel(small(), "line", delay=2), [0], 10)
    for first, second in zip(again, fresh, strict=True):
        assert_same(first, second)
    assert fresh[-1]["inbox_mask"].sum() == 12


class Reusing(ProcurementEnv):
    """Releases in buffers that it uses again, as environments may."""

    def release(self, senders):
        released = super().release(senders)
        self.buffers = getattr(
            self, "buffers", {name: array.astype(float) for name, array in released.items()}
        )
        for name, array in released.items():
            self.buffers[name][:] = array
        return self.buffers


def test_what_is_under_way_outlives_the_buffers_of_releases():
    arguments = {"num_agents": 4, "num_producers": PRODUCERS, "market_seed": 1}
    for first, second in zip(
        run_of(Channel(Reusing(**arguments), "line", delay=1), [0], 10),
        run_of(Channel(ProcurementEnv(**arguments), "line", delay=1), [0], 10),
        strict=True,
    ):
        assert_same(first, second)


@pytest.mark.parametrize("delay", [0, 3])
def test_an_echo_is_what_others_hear_at_once_and_for_free(delay):
    arguments = {"schedule": {"name": "fixed_gap", "gap": 5}, "delay": delay, "loss": 0.3}
    with_echo = run_of(Channel(private(small()), echo=True, **arguments), [0, 1], 20)
    without = run_of(Channel(private(small()), **arguments), [0, 1], 20)
    own = np.arange(4)
    echoes = {}
    for t, (step, plain) in enumerate(zip(with_echo, without, strict=True), start=1):
        assert (step["inbox_mask"][:, own, own] == (t % 5 == 0)).all()
        if t % 5 == 0:
            echoes[t] = {name: step[f"inbox_{name}"][:, own, own].copy() for name in NAMES}
        for name in NAMES:
            heard = plain["inbox_mask"]
            if heard.any():
                np.testing.assert_array_equal(
                    step[f"inbox_{name}"][heard],
                    np.broadcast_to(echoes[t - delay][name][:, np.newaxis], (2, 4, 4, PRODUCERS))[heard],
                )
            step[f"inbox_{name}"][:, own, own] = 0
        step["inbox_mask"][:, own, own] = False
        assert (step.pop("sent") == (t % 5 == 0)).all()
        # But for the echoes, all is as without: inboxes, traffic, budgets.
        assert_same(step, plain)
    assert len(echoes) == 4


@pytest.mark.parametrize("time_to_live", [None, 1, 5])
@pytest.mark.parametrize("topology", [{"edges": []}, {"name": "erdos_renyi", "probability": 0}], ids=str)
def test_agents_without_edges_hear_only_themselves(topology, time_to_live):
    env, silent = (
        Channel(private(small()), topology, {"name": "fixed_gap", "gap": 2}, 0, time_to_live, echo=echo)
        for echo in (True, False)
    )
    total = np.zeros((2, 4, 4, PRODUCERS))
    for t, (step, nothing) in enumerate(
        zip(run_of(env, [0, 1], 6), run_of(silent, [0, 1], 6), strict=True), 1
    ):
        assert np.array_equal(
            step["inbox_mask"], np.broadcast_to(np.eye(4, dtype=bool) & (t % 2 == 0), (2, 4, 4))
        )
        total += step["inbox_delivered"]
        assert not step["messages"].any()
        assert not nothing["inbox_mask"].any()
        assert not nothing["inbox_delivered"].any()
    assert total[:, range(4), range(4)].all()
    assert not env.traffic["bytes"].any()
    assert env.privacy() == env.env.privacy()
    assert env.privacy().epsilon > 0


def test_synchronise_sends_for_everybody_where_somebody_asks():
    asking, always = Channel(small(), "line", "synchronise"), Channel(small(), "line")
    for env in (asking, always):
        env.reset_batch([0, 1, 2])
    luck = np.random.default_rng(0)
    unheard = np.zeros((3, 4, PRODUCERS))
    for _ in range(40):
        send = luck.random((3, 4)) < 0.1
        expected = always.step_batch(buying(always, 3))
        unheard += expected.observation["delivered"]
        step = asking.step_batch({"action": buying(asking, 3), "send": send})
        called = send.any(axis=1)
        assert np.array_equal(step.info["messages"], expected.info["messages"] * called[:, None])
        assert np.array_equal(
            step.observation["inbox_mask"], expected.observation["inbox_mask"] & called[:, None, None]
        )
        inbox = np.where(step.observation["inbox_mask"][..., None], unheard[:, None], 0)
        np.testing.assert_array_equal(step.observation["inbox_delivered"], inbox)
        unheard[called] = 0
    assert 0 < asking.traffic["messages"].sum() < always.traffic["messages"].sum()


@pytest.mark.parametrize(
    ("topology", "arguments", "unreached"),
    [
        ({"edges": []}, {}, "agent 1 reach agent 0"),
        ({"edges": []}, {"echo": True}, "agent 1 reach agent 0"),
        ({"edges": [[0, 1], [2, 3]]}, {}, "agent 2 reach agent 0"),
        ("line", {"time_to_live": 2}, "which is 2, do not let agent 3 reach agent 0"),
        ("line", {"time_to_live": 2, "cliques": True}, "agent 3 reach agent 0"),
        (nx.path_graph(4, nx.DiGraph), {}, "which is None, do not let agent 1 reach agent 0"),
    ],
)
def test_synchronise_needs_everybody_in_reach(topology, arguments, unreached):
    with pytest.raises(ValueError, match=f"topology and time_to_live.*{unreached}"):
        Channel(small(), topology, "synchronise", **arguments)
    Channel(small(), topology, "on_request", **arguments)


@pytest.mark.parametrize(
    ("num_agents", "topology", "time_to_live"),
    [
        (1, {"edges": []}, None),
        (4, "star", 2),
        (4, "line", 3),
        (4, nx.cycle_graph(4, nx.DiGraph), 3),
        (4, "complete", 1),
    ],
)
def test_synchronise_where_everybody_is_in_reach(num_agents, topology, time_to_live):
    env = Channel(small(num_agents), topology, "synchronise", 0, time_to_live, echo=True)
    env.reset_batch([0])
    ask = np.arange(num_agents)[np.newaxis] == num_agents - 1
    assert env.step_batch({"action": buying(env), "send": ask}).observation["inbox_mask"].all()
    assert not env.step_batch({"action": buying(env), "send": ask & False}).observation["inbox_mask"].any()


def test_drawn_graphs_that_a_request_cannot_cross_are_refused_and_change_nothing():
    topology = {"name": "erdos_renyi", "probability": 0.6}
    connected = {seed: nx.is_connected(graph_of(topology, None, 4, seed)) for seed in range(100)}
    good = [seed for seed, is_connected in connected.items() if is_connected][:2]
    bad = next(seed for seed, is_connected in connected.items() if not is_connected)
    env, twin = (Channel(private(small()), topology, "synchronise", loss=0.2) for _ in range(2))
    action = {"action": buying(env, 2), "send": np.ones((2, 4), bool)}
    for each in (env, twin):
        each.reset_batch(good)
        each.step_batch(action)
    with pytest.raises(ValueError, match=rf"topology and time_to_live.*with the seed {bad};"):
        env.reset_batch([good[0], bad, good[1]])
    with pytest.raises(ValueError, match="seeds is empty"):
        env.reset_batch([])
    for _ in range(5):
        assert_same(env.step_batch(action)._asdict(), twin.step_batch(action)._asdict())


@pytest.mark.parametrize("arguments", [{}, {"echo": True, "cliques": True, "time_to_live": 1}], ids=str)
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_pickling_in_mid_episode(loss, arguments):
    env = Channel(private(small(5)), "ring", delay=2, loss=loss, **arguments)
    env.reset_batch([1, 2])
    for _ in range(7):
        env.step_batch(buying(env, 2))
    twin = pickle.loads(pickle.dumps(env))
    for _ in range(20):
        first, second = env.step_batch(buying(env, 2)), twin.step_batch(buying(env, 2))
        assert first.observation["inbox_mask"].any()
        assert_same(first._asdict(), second._asdict())
    assert_same(env.traffic, twin.traffic)


def test_policies_are_told_of_inboxes():
    env = Channel(small())
    told = env.policy_spaces
    assert told.horizon == 60
    assert told.observation["inbox_good"].shape == (4, PRODUCERS)
    assert told.observation["inbox_mask"].dtype == np.bool_
    assert told.action == env.env.single_action_space
    observation, _ = env.reset_batch([0, 1])
    assert observation.keys() == set(told.observation)
    assert observation["inbox_good"].shape == (2, 4, 4, PRODUCERS)
    assert observation["inbox_good"].dtype == np.float64


def test_what_is_sent_is_what_the_privatizer_released():
    noisy, raw = Channel(private(small())), Channel(small())
    for env in (noisy, raw):
        env.reset_batch([0])
    heard, truth = (env.step_batch(buying(env)).observation["inbox_good"] for env in (noisy, raw))
    twin = private(small())
    twin.reset_batch([0])
    twin.step_batch(buying(twin))
    released = twin.release(np.ones((1, 4), bool))["good"]
    assert np.array_equal(heard[0, 0, 1:], released[0, 1:])
    assert not np.array_equal(heard, truth)
    assert (heard < 0).any()


def test_privacy_is_claimed_only_where_times_are_fixed_in_advance():
    fixed = Channel(private(small()))
    fixed.reset_batch([0])
    fixed.step_batch(buying(fixed))
    assert fixed.privacy() == fixed.env.privacy()
    for schedule in ("on_request", "synchronise"):
        asked = Channel(private(small()), schedule=schedule)
        asked.reset_batch([0])
        asked.step_batch({"action": buying(asked), "send": np.ones((1, 4), np.bool_)})
        claim = asked.privacy()
        assert claim.epsilon is None
        assert "times may depend on raw local data" in claim.reason
        assert claim.adjacency == fixed.privacy().adjacency
    open_channel = Channel(small())
    open_channel.reset_batch([0])
    open_channel.step_batch(buying(open_channel))
    assert open_channel.privacy().epsilon == np.inf


def test_who_has_spent_the_budget_is_not_permitted_to_send():
    silenced = Channel(private(small(), releases=2, on_exhausted="silence"))
    silenced.reset_batch([0])
    traffic = [silenced.step_batch(buying(silenced)).info["messages"].sum() for _ in range(4)]
    assert traffic == [12, 12, 0, 0]
    echoing = Channel(private(small(), releases=2, on_exhausted="silence"), echo=True)
    echoing.reset_batch([0])
    sent = [echoing.step_batch(buying(echoing)).observation["sent"].tolist() for _ in range(4)]
    assert sent == [[[[True]] * 4]] * 2 + [[[[False]] * 4]] * 2
    strict = Channel(private(small(), releases=1))
    strict.reset_batch([0])
    strict.step_batch(buying(strict))
    with pytest.raises(BudgetExhaustedError):
        strict.step_batch(buying(strict))


def test_agents_choose_when_to_send():
    env = Channel(small(), schedule="on_request")
    assert env.single_action_space["action"] == env.env.single_action_space
    assert env.single_action_space["send"].n == 2
    assert env.policy_spaces.action == env.single_action_space
    assert env.action_formats["portions"].space.keys() == {"action", "send"}
    env.reset(seed=0)
    actions = {
        agent: {"action": np.ones(PRODUCERS, np.int64), "send": j == 2} for j, agent in enumerate(env.agents)
    }
    observations, *_, infos = env.step(actions)
    assert observations["agent_0"]["inbox_mask"].tolist() == [False, False, True, False]
    assert [info["messages"] for info in infos.values()] == [0, 0, 3, 0]


@pytest.mark.parametrize("joint", [False, True])
def test_learning_agents_see_inboxes(joint):
    peers = "fedbandit_envs.baselines.procurement:OneOfEach"
    view = Control(Channel(small()), joint=joint, peers=peers, action_format="portions")
    observation, _ = view.reset([0, 1])
    choice = np.zeros((2, *view.action_space.shape), np.float32)
    observation, *_ = view.step(choice)
    assert observation["inbox_mask"].shape == ((2, 4, 4) if joint else (2, 4))
    assert observation["inbox_mask"].any()


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (np.ones((1, 4, PRODUCERS), np.int64), TypeError, "a mapping of 'action' and 'send' is required"),
        ({"action": 1, "often": 2}, TypeError, "a mapping of 'action' and 'send' is required"),
        ({"send": np.ones((1, 3), bool)}, ValueError, "has shape (1, 3); (replicas, agents) = (1, 4)"),
        ({"send": np.full((1, 4), 2)}, ValueError, "action['send'] lies between 2 and 2; 0 or 1"),
        ({"send": np.ones((1, 4))}, TypeError, "action['send'] has dtype float64"),
        ({"action": -np.ones((1, 4, PRODUCERS), int)}, ValueError, "an integer >= 0"),
    ],
)  # fmt: skip
def test_bad_requests_are_named_and_change_nothing(action, error, message):
    env = Channel(small(), schedule="on_request")
    good = {"action": buying(env), "send": np.ones((1, 4), bool)}
    if isinstance(action, dict):
        action = {**good, **action}
    env.reset_batch([0])
    with pytest.raises(error, match=re.escape(message)):
        env.step_batch(action)
    assert env.step_batch(good).observation["round"][0, 0, 0] == 1
    assert env.traffic["messages"].sum() == 12


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.ones(PRODUCERS), "actions['agent_0'] is"),
        ({"action": np.ones(PRODUCERS)}, "a mapping of ['action', 'send'] is required"),
        ({"action": np.ones(2), "send": 1}, "actions['agent_0']['action'] has shape (2,); (3,)"),
        ({"action": np.ones(PRODUCERS), "send": [1]}, "actions['agent_0']['send'] has shape (1,); ()"),
    ],
)
def test_the_keyed_face_names_bad_requests(action, message):
    env = Channel(small(), schedule="on_request")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=re.escape(message)):
        env.step(dict.fromkeys(env.agents, action))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"topology": "torus"}, ValueError, "topology is {'name': 'torus'}"),
        ({"topology": nx.cycle_graph(5)}, ValueError, "a graph of 5 nodes"),
        ({"schedule": "often"}, ValueError, "schedule name is 'often'"),
        ({"delay": -1}, ValueError, "delay is -1; an integer >= 0"),
        ({"delay": 1.0}, TypeError, "delay is 1.0; an integer >= 0"),
        ({"delay": True}, TypeError, "delay is True"),
        ({"delay": None}, TypeError, "delay is None"),
        ({"time_to_live": 0}, ValueError, "time_to_live is 0; None or an integer >= 1"),
        ({"time_to_live": 1.5}, TypeError, "time_to_live is 1.5; None or an integer >= 1"),
        ({"topology": "star", "time_to_live": 1}, ValueError, "time_to_live is 1; None or at least 2"),
        ({"loss": 1.0}, ValueError, "loss is 1.0; a number in [0, 1)"),
        ({"loss": -0.1}, ValueError, "loss is -0.1"),
        ({"loss": float("nan")}, ValueError, "loss is nan"),
        ({"loss": "0.1"}, TypeError, "loss is '0.1'"),
        ({"duplication": 1}, ValueError, "duplication is 1; a number in [0, 1)"),
        ({"echo": "no"}, TypeError, "echo is 'no'; True or False"),
        ({"echo": 1}, TypeError, "echo is 1; True or False"),
        ({"cliques": None}, TypeError, "cliques is None; True or False"),
        ({"cliques": True}, ValueError, "time_to_live is None; with cliques=True an integer >= 1"),
        ({"cliques": True, "time_to_live": 0}, ValueError, "time_to_live is 0; None or an integer >= 1"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Channel(small(), **arguments)


def test_a_channel_around_a_channel_is_refused():
    with pytest.raises(ValueError, match="env already has a Channel"):
        Channel(Reveal(Channel(small())))


def test_a_privatizer_around_a_channel_is_refused():
    with pytest.raises(ValueError, match="the privatizer must be inside"):
        private(Reveal(Channel(small())))


def test_arguments_may_come_from_json():
    text = json.dumps(
        {
            "topology": {"name": "random_regular", "degree": 2},
            "schedule": {"name": "geometric", "count": 8, "horizon": 60},
            "delay": 1,
            "time_to_live": 2,
            "loss": 0.1,
            "echo": True,
            "cliques": True,
        }
    )
    env = Channel(small(), **json.loads(text))
    env.reset_batch([0])
    env.step_batch(buying(env))


def test_a_schedule_of_ones_own():
    class Once(FixedSchedule):
        def count(self, horizon):
            return int(horizon >= 3)

    env = Channel(small(), schedule=Once())
    env.reset_batch([0])
    assert [int(env.step_batch(buying(env)).info["messages"].sum()) for _ in range(5)] == [0, 0, 12, 0, 0]


def test_stepping_before_reset():
    for schedule in ("every_round", "on_request"):
        env = Channel(small(), schedule=schedule)
        with pytest.raises(ResetNeeded):
            env.step_batch({"action": buying(env), "send": np.ones((1, 4), bool)})
