"""Fed-PE: its optimal design, its decisions against a plain numpy program on the same noise, and what it refuses."""

import numpy as np
import pytest
from fedpe_reference import Program, best_value, gap, information
from played import played, refused, wrapped

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.linear.served import LocalUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.servers.phases import optimal_design
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import Byzantine, Server

SEEDS = (0, 1, 2)
# Features ten times as long as the paper's let agents drop arms within a thousand rounds.
LONG = {"num_agents": 12, "num_arms": 5, "dim": 3, "context_bound": 10.0, "reward_bound": 20.0}


def problem(seed, agents=9, arms=4, dim=3, share=0.6):
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((agents, arms, dim))
    kept = rng.random((agents, arms)) < share
    kept[np.arange(agents), rng.integers(arms, size=agents)] = True
    return directions / np.linalg.norm(directions, axis=2, keepdims=True), kept


# The design


@pytest.mark.parametrize("share", [0.15, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_design_is_the_best_that_a_general_solver_finds(seed, share):
    directions, kept = problem(seed, share=share)
    shares = optimal_design(directions, kept, sweeps=2000, gap=1e-9)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    assert (shares >= 0).all()
    assert (shares[~kept] == 0).all()
    matrices = information(directions, shares)
    values = np.linalg.eigvalsh(matrices)
    assert np.log(values[values > 1e-9]).sum() == pytest.approx(best_value(directions, kept), abs=1e-6)
    assert abs(gap(directions, kept, shares)) < 1e-6


def test_ten_sweeps_come_as_near_as_is_asked_at_the_papers_size():
    directions, kept = problem(0, 100, 10, 3)
    assert gap(directions, kept, optimal_design(directions, kept)) < 0.1


def test_a_direction_of_one_agent_alone_keeps_its_share():
    """In the plane one agent pulls along the second axis, all others along the first: no rank may be lost."""
    directions = np.zeros((5, 2, 2))
    directions[..., 0] = 1.0
    directions[0] = [[0.0, 1.0], [1.0, 0.0]]
    shares = optimal_design(directions, np.ones((5, 2), bool), sweeps=200, gap=0.0)
    inverse = np.linalg.pinv(information(directions, shares), rcond=1e-9, hermitian=True)
    assert np.isfinite(inverse).all()
    assert shares[0, 0] > 0.5
    assert np.linalg.matrix_rank(information(directions, shares)).sum() == 3


# Decisions


def play(name, rounds, seeds=SEEDS, server=None, **kwargs):
    """The federation after an episode, its features, and arms, rewards and remaining arms, round by round."""
    env = wrapped(name, make_federation("FedFixed-v0", max_cycles=rounds, **kwargs), server)
    arms, rewards = [], []
    for arm, seen, step in played(env, BASELINES[name].make_policy(), seeds):
        features = seen["contexts"]
        arms.append(arm)
        rewards.append(step.reward.copy())
    return env, features, np.array(arms), np.array(rewards)


@pytest.mark.parametrize("name", ["Fed-PE", "Fed-PE-enhanced"])
def test_it_decides_like_the_twin(name):
    phases = 10
    env, features, arms, rewards = play(name, 2 ** (phases + 1), **LONG)
    assert env.unwrapped._info["clipped"].sum() == 0
    dropped = []
    for r, x in enumerate(features):
        mean = x[..., 0]
        noise = (rewards[:, r] - np.take_along_axis(mean, arms[:, r].T, axis=1).T).T
        expected, kept = Program(12, 5, 3, phases, enhanced=name != "Fed-PE").run(x, noise)
        pulls = np.stack([(arms[:, r] == k).sum(axis=0) for k in range(5)], axis=1)
        np.testing.assert_array_equal(pulls, expected)
        dropped.append(kept.sum(axis=(1, 2)))
    # The twins have dropped arms, but not all at once.
    assert (np.array(dropped)[:, -1] < 40).all()
    assert len(np.unique(dropped)) > 6


def test_with_known_norms_estimates_are_those_of_least_squares():
    """One agent, whose features differ in length: theta of a phase is the weighted solution."""
    two = {**LONG, "num_arms": 4, "num_agents": 2}
    env, features, arms, rewards = play("Fed-PE-collaborative", 4, (0,), **two)
    server = env._policy
    x, y = features[0], rewards[:, 0].T
    gram = np.einsum("iad,iae->ade", x, x)
    moment = np.einsum("iad,ia->ad", x, np.take_along_axis(y, np.argsort(arms[:, 0].T, axis=1), axis=1))
    expected = np.einsum("ade,ae->ad", np.linalg.pinv(gram, rcond=1e-9, hermitian=True), moment)
    np.testing.assert_allclose(server._estimate[0], expected, rtol=1e-9, atol=1e-9)


def test_the_radius_at_the_papers_setting():
    server = BASELINES["Fed-PE"].wrap(make_federation("FedFixed-v0", max_cycles=131_072))._policy
    assert server._theory(100, 10, 3, 131_072) == pytest.approx(23.994, abs=5e-4)


# What it refuses


SIZES = dict.fromkeys(("num_agents", "num_arms", "dim"))


CERTAIN = {"contexts": [[[0.5, 0.5]] * 4] * 3, "parameter": [0.6, 0.6], "reward_sd": 0.0, **SIZES}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({**CERTAIN, "reward": "bernoulli"}, "reward is 'bernoulli'; 'normal' with"),
        ({**CERTAIN, "reward": "normal"}, "reward is 'normal'; 'normal' with"),
        ({"contexts": "unit_ball"}, "contexts change from round to round"),
        (
            {"contexts": [[[0.5, 0.5]] * 3, [[0.5, 0.5]] * 2 + [[0, 0]]], **SIZES},
            "contexts have norm 0 for some",
        ),
    ],
)
def test_problems_that_do_not_fit_are_refused(given, message):
    env = BASELINES["Fed-PE"].wrap(make_federation("FedFixed-v0", **given))
    with pytest.raises(UnfitError, match=message):
        env.reset_batch([0])


def test_agents_refuse_contexts_that_change():
    refused(LocalUCB(), parallel_env(), "contexts change from round to round")


def test_other_messages_and_lost_ones_are_refused():
    plain = make_federation("FedFixed-v0", num_agents=3, num_arms=4)
    for policy in ("phases", "disjoint"):
        with pytest.raises(UnfitError, match=r"agents release .*'statistic'.*; Messages with .* are"):
            Server(plain, "every_round", policy=policy)
    with pytest.raises(UnfitError, match=r"Messages with .*'lengths'.* are required"):
        play("Fed-PE", 4, server={"collaborative": True}, num_agents=3)
    with pytest.raises(ValueError, match=r"loss is 0\.1; 0 is required with a policy"):
        BASELINES["Fed-PE"].wrap(plain, {"server": {"loss": 0.1}})


@pytest.mark.parametrize("attack", ["sign_flip", "garbage", "scaled"])
def test_faulty_messages_plan_nothing_that_there_is_not(attack):
    """A liar may spoil the estimates, but every planned arm exists and every agent keeps one."""
    baseline = BASELINES["Fed-PE"]
    env = make_federation("FedFixed-v0", num_agents=3, num_arms=4, max_cycles=40)
    messages, server = (baseline.wrappers[part] for part in ("messages", "server"))
    inside = messages.make(env, **{**messages.kwargs, **messages.kwargs_from_env(env)})
    env = server.make(Byzantine(inside, [0], attack), **server.kwargs)
    policy = baseline.make_policy()
    *_, (_, seen, _) = played(env, policy, [0, 1])
    assert ((seen["server_rest"] >= 0) & (seen["server_rest"] < 4)).all()
    assert env._policy._left.any(axis=-1).all()
