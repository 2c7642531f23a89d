"""Learned policies and rules of when to send: their formulas, their files, and whom they may not play for."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from played import played

from fedbandit_envs import arms_v0, linear_v0, procurement_v0
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines import learned as learned_files
from fedbandit_envs.baselines.learned import (
    FEATURES,
    LAYERS,
    RULE_LAYERS,
    ItemNetwork,
    LearnedIndex,
    LearnedSend,
)
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.procurement import LaplaceIndex
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.releases import Interleaved
from fedbandit_envs.wrappers.transport.channel import Channel

EACH, ONCE = ("estimate", "doubt", "cost", "capacity"), ("threshold", "time_left")


def some_network(each=EACH, once=ONCE, hidden=5, seed=0):
    generator = np.random.default_rng(seed)
    shapes = [
        (len(each), hidden), (len(each), hidden), (len(once), hidden), (hidden,), (hidden, hidden), (hidden,),
        (hidden,), (1,),
    ]  # fmt: skip
    layers = {name: generator.normal(size=shape) for name, shape in zip(LAYERS, shapes, strict=True)}
    return ItemNetwork(each, once, layers)


def layers_of(network):
    return dict(zip(LAYERS, network._layers, strict=True))


def constant_network(value, each=EACH, once=ONCE):
    layers = {name: np.zeros_like(layer) for name, layer in layers_of(some_network(each, once)).items()}
    return ItemNetwork(each, once, {**layers, "last_bias": np.array([value])})


@pytest.fixture
def features():
    generator = np.random.default_rng(1)
    return [generator.uniform(-1, 1, shape).astype(np.float32) for shape in ((3, 4, 7, 4), (3, 4, 2))]


def test_network_is_its_formula(features):
    network = some_network()
    each, once = features
    own, pooled, shared, first_bias, middle, middle_bias, last, last_bias = network._layers
    common = each.mean(axis=-2, dtype=float) @ pooled + once @ shared + first_bias
    first = np.maximum(each @ own + common[..., np.newaxis, :], 0)
    expected = np.maximum(first @ middle + middle_bias, 0) @ last + last_bias[0]
    np.testing.assert_allclose(network(each, once), expected, rtol=1e-12, atol=1e-12)


def test_network_survives_its_file(features, tmp_path):
    network = some_network()
    network.save(tmp_path / "some.npz")
    loaded = ItemNetwork.load(tmp_path / "some.npz")
    assert (loaded.each, loaded.once) == (EACH, ONCE)
    # Files hold float32.
    np.testing.assert_allclose(loaded(*features), network(*features), atol=1e-5)


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a file of weights was unpickled",)


def test_files_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "bomb.npz", each_names=np.array([Bomb()]), once_names=np.array(ONCE))
    (tmp_path / "bomb.pkl").write_bytes(pickle.dumps(Bomb()))
    for name in ("bomb.npz", "bomb.pkl"):
        with pytest.raises(ValueError, match="pickle"):
            LearnedIndex(tmp_path / name)


@pytest.mark.parametrize(("change", "message"), [
    ({"middle": np.zeros((5, 4))}, r"layer 'middle' has shape \(5, 4\); \(5, 5\) is required"),
    ({"last_bias": np.array([np.nan])}, "layer 'last_bias' has numbers that are not finite"),
])  # fmt: skip
def test_wrong_layers_are_named(change, message):
    layers = layers_of(some_network())
    with pytest.raises(ValueError, match=message):
        ItemNetwork(EACH, ONCE, {**layers, **change})
    del layers["middle"]
    with pytest.raises(ValueError, match=r"\['middle'\] are required too"):
        ItemNetwork(EACH, ONCE, layers)


@pytest.mark.parametrize("width", [0.0, 0.8])
def test_constant_networks_are_laplace_indices(width):
    """Greed at 0; features are float32, which no decision here hangs on."""
    env = procurement_v0.parallel_env(max_cycles=100)
    learned, plain = (
        simulate(env, policy, range(3)).regret
        for policy in (LearnedIndex(constant_network(width / 2)), LaplaceIndex(width))
    )
    np.testing.assert_array_equal(learned, plain)


def test_who_learned_alone_takes_no_notice_of_what_is_heard():
    alone, among = (
        simulate(wrap(procurement_v0.parallel_env(max_cycles=40)), LearnedIndex("PPO-procurement"), range(2))
        for wrap in (lambda env: env, BASELINES["FCB-every-round"].wrap)
    )
    np.testing.assert_array_equal(alone.regret, among.regret)


def test_networks_of_another_problem_are_refused():
    with pytest.raises(ValueError, match="'estimate' and 'doubt' or 'width' are required first"):
        LearnedIndex(constant_network(0.0, ("estimate", "cost")))
    env = arms_v0.parallel_env(max_cycles=5)
    with pytest.raises(UnfitError, match="the network takes the features"):
        simulate(env, LearnedIndex("PPO-procurement"), [0])
    with pytest.raises(FileNotFoundError):
        LearnedIndex("PPO-chess")


LEARNED = sorted(name for name, entry in BASELINES.items() if "weights" in entry.policy_kwargs)


def test_packaged_networks_are_small_and_registered():
    files = sorted(Path(learned_files.__file__).parent.glob("*.npz"), key=lambda file: file.stem)
    assert [file.stem for file in files] == LEARNED
    assert all(file.stat().st_size < 50_000 for file in files)


def test_linear_index_is_greedy_ridge_regression_at_zero():
    env = linear_v0.parallel_env(max_cycles=30, num_arms=6, dim=3)
    policy = LearnedIndex(constant_network(0.0, ("estimate", "width", "length"), ("time_left",)))
    for arm, observation, _ in played(env, policy, [0, 1]):
        total = observation["total_statistic"]
        parameter = np.linalg.solve(np.eye(3) + total[..., :3, :3], total[..., :3, 3:])[..., 0]
        value = np.einsum("rjkd,rjd->rjk", observation["contexts"], parameter)
        chosen = np.take_along_axis(value, arm[..., np.newaxis], -1)[..., 0]
        np.testing.assert_allclose(chosen, value.max(axis=-1), atol=1e-6)


SMALL = {"num_agents": 3, "num_arms": 6, "dim": 3}


def threshold(least, **slopes):
    """A rule of one unit: send once a weighted sum of features exceeds a number."""
    first = np.array([[slopes.get(name, 0.0)] for name in FEATURES])
    return dict(zip(RULE_LAYERS, (first, np.array([-least]), np.ones(1), np.zeros(1)), strict=True))


def some_rule(seed=0, hidden=5):
    shapes = [(len(FEATURES), hidden), (hidden,), (hidden,), (1,)]
    generator = np.random.default_rng(seed)
    return {name: generator.normal(size=shape) for name, shape in zip(RULE_LAYERS, shapes, strict=True)}


def traffic(policy, schedule, rounds=40, **changes):
    env = Channel(parallel_env(max_cycles=rounds, **{**SMALL, **changes}), schedule=schedule)
    return simulate(env, policy, range(3))


# Just below the numbers that the features have when the schedules send.
AS_SCHEDULES = [
    pytest.param(threshold(-1.0), "every_round", id="every round"),
    pytest.param(threshold(0.0), "silent", id="silence at 0"),
    pytest.param(threshold(0.249, ratio=1.0), {"name": "doubling", "start": 2, "stop": None}, id="doubling"),
    pytest.param(threshold(np.log(9.9) / np.log(40), gap=1.0), {"name": "fixed_gap", "gap": 10}, id="gap"),
]


@pytest.mark.parametrize(("rule", "schedule"), AS_SCHEDULES)
def test_rules_have_schedules_within_their_reach(rule, schedule):
    learned = traffic(LearnedSend(rule), "on_request")
    fixed = traffic(BASELINES["FedUCB-nonprivate"].make_policy(), schedule)
    np.testing.assert_array_equal(learned.messages, fixed.messages)
    # What is pulled is FedUCB's.
    np.testing.assert_array_equal(learned.regret, fixed.regret)


def test_decisions_are_the_formulas():
    """Features made anew from observations and from what was sent, round by round."""
    layers, rounds = some_rule(3), 60
    policy = LearnedSend(layers)
    env = Channel(parallel_env(max_cycles=rounds, **SMALL), schedule="on_request")
    seen = env.reset_batch([0, 1]).observation
    policy.reset(env.policy_spec, row_seeds([0, 1], 3))
    rows = (2, 3)
    gram = np.tile(np.eye(3), (*rows, 1, 1))
    unsent, last, times, heard = np.zeros(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows)
    both = set()
    for t in range(rounds):
        x = seen["pulled_context"].astype(float)
        gram += x[..., :, np.newaxis] * x[..., np.newaxis, :] * (t > 0)
        heard_of = np.where(seen["inbox_mask"][..., np.newaxis, np.newaxis], seen["inbox_statistic"], 0)
        gram += heard_of.sum(axis=2)[..., :3, :3]
        heard = np.where(seen["inbox_mask"].any(axis=-1), t, heard)
        answer = policy.act(seen)
        x = np.take_along_axis(seen["contexts"], answer["action"][..., np.newaxis, np.newaxis], 2)[..., 0, :]
        unsent += np.log1p(np.einsum("rji,rjih,rjh->rj", x, np.linalg.inv(gram), x))
        features = np.stack([
            np.log(0.01 + unsent) / 3,
            np.log2((t + 1) / np.maximum(last, 1)) / 4,
            np.log(t + 1 - last) / np.log(rounds),
            np.log(1 + t - heard) / np.log(rounds),
            np.full(rows, 1 - (t + 1) / rounds),
            np.log2(1 + times) / 4,
        ], axis=-1)  # fmt: skip
        units = np.tanh(features @ layers["first"] + layers["first_bias"])
        send = units @ layers["last"] + layers["last_bias"][0] > 0
        np.testing.assert_array_equal(answer["send"], send)
        both |= set(send.flat)
        unsent, last, times = np.where(send, 0, unsent), np.where(send, t + 1, last), times + send
        seen = env.step_batch({name: array.copy() for name, array in answer.items()}).observation
    assert both == {False, True}


def sent_and_pulled(rule, seeds):
    """Round by round: messages and arms of all replicas."""
    env = Channel(parallel_env(max_cycles=30, **SMALL), schedule="on_request")
    rounds = [(step.info["messages"].copy(), arm) for arm, _, step in played(env, LearnedSend(rule), seeds)]
    return [np.array(each) for each in zip(*rounds, strict=True)]


def test_several_rules_play_side_by_side():
    one, other = some_rule(1), some_rule(2)
    several = {name: np.stack([one[name], other[name]]) for name in RULE_LAYERS}
    both = sent_and_pulled(several, (5, 5, 6, 6))
    for place, layers in enumerate((one, other)):
        for found, alone in zip(both, sent_and_pulled(layers, (5, 6)), strict=True):
            np.testing.assert_array_equal(found[:, place::2], alone)


def test_wrong_layers_of_rules_are_named():
    with pytest.raises(ValueError, match=r"layer 'first' has shape \(5, 5\); \(6, 5\) is required"):
        LearnedSend({**some_rule(), "first": np.zeros((5, 5))})
    with pytest.raises(ValueError, match=r"\['last'\] are required too"):
        LearnedSend({name: array for name, array in some_rule().items() if name != "last"})
    with pytest.raises(ValueError, match="are required too"):
        LearnedSend("PPO-arms")


def test_those_who_are_not_asked_have_no_use_for_a_rule():
    env = parallel_env(max_cycles=5, **SMALL)
    for wrapped in (Channel(env), Channel(Interleaved(env, period=2), schedule="on_request"), env):
        with pytest.raises(UnfitError, match="on_request"):
            simulate(wrapped, LearnedSend(some_rule()), [0])


def test_nothing_is_claimed_and_no_more_is_sent_than_planned():
    entry = BASELINES["ES-send"]
    env = entry.wrap(parallel_env(max_cycles=60, **SMALL), {"privatizer": {"releases": 2}})
    eager = entry.make_policy(weights=threshold(-1.0))
    assert (simulate(env, eager, [0, 1]).messages[-1] == 2 * 2).all()
    claim = env.privacy()
    assert claim.epsilon is None
    assert "agents choose when to send" in claim.reason
