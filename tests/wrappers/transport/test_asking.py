"""Agents that choose when to send: each for itself, or one for all."""

import re

import networkx as nx
import numpy as np
import pytest
from channels import PRODUCERS, assert_same, buying, graph_of, private, seen, small
from played import begun

from fedbandit_envs.wrappers.transport.channel import Channel


def test_synchronise_sends_for_everybody_where_somebody_asks():
    asking, always = (begun(Channel(small(), "line", *when), range(3)) for when in (["synchronise"], []))
    luck = np.random.default_rng(0)
    unheard = np.zeros((3, 4, PRODUCERS))
    for _ in range(40):
        send = luck.random((3, 4)) < 0.1
        expected = always.step_batch(buying(always, 3))
        unheard += expected.observation["delivered"]
        step = asking.step_batch({"action": buying(asking, 3), "send": send})
        called = send.any(axis=1)
        assert np.array_equal(step.info["messages"], expected.info["messages"] * called[:, None])
        mask = step.observation["inbox_mask"]
        assert np.array_equal(mask, expected.observation["inbox_mask"] & called[:, None, None])
        inbox = np.where(mask[..., None], unheard[:, None], 0)
        np.testing.assert_array_equal(seen(step.observation)["inbox_delivered"], inbox)
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
    env = begun(Channel(small(num_agents), topology, "synchronise", 0, time_to_live, echo=True))
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
    with pytest.raises(ValueError, match="topology and time_to_live"):
        env.reset_batch([good[0], bad, good[1]])
    with pytest.raises(ValueError, match=r"seeds is \[\]"):
        env.reset_batch([])
    for _ in range(5):
        assert_same(env.step_batch(action)._asdict(), twin.step_batch(action)._asdict())


def test_agents_choose_when_to_send():
    env = Channel(small(), schedule="on_request")
    assert env.single_action_space["action"] == env.env.single_action_space
    assert env.single_action_space["send"].n == 2
    assert env.policy_spec.action == env.single_action_space
    assert env.action_formats["portions"].space.keys() == {"action", "send"}
    env.reset(seed=0)
    actions = {
        agent: {"action": np.ones(PRODUCERS, np.int64), "send": j == 2} for j, agent in enumerate(env.agents)
    }
    observations, *_, infos = env.step(actions)
    assert observations["agent_0"]["inbox_mask"].tolist() == [False, False, True, False]
    assert [info["messages"] for info in infos.values()] == [0, 0, 3, 0]


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (np.ones((1, 4, PRODUCERS), np.int64), TypeError, "a mapping of ['action', 'send'] is required"),
        ({"action": 1, "often": 2}, TypeError, "a mapping of ['action', 'send'] is required"),
        ({"send": np.ones((1, 3), bool)}, ValueError, "action['send'] has shape (1, 3)"),
        ({"send": np.full((1, 4), 2)}, ValueError, "action['send'] of agent_0 (replica 0) is 2; an integer in [0, 1]"),
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
