"""Policies: the regret that theory and the papers expect. That they keep to the protocol, test_conformance.py says."""

import numpy as np
import pytest

from fedbandit_envs.baselines.procurement.silent import SSUCB, Clairvoyant, OneOfEach, UniformRandom
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.observation import Reveal


@pytest.mark.parametrize("oracle", ["exact", "greedy"])
@pytest.mark.parametrize("threshold", [0.4, 0.7])
@pytest.mark.parametrize("market", ["uniform", "normal"])
def test_clairvoyant_has_no_regret_with_the_same_oracle(oracle, threshold, market):
    env = Reveal(
        parallel_env(max_cycles=20, market=market, quality_threshold=threshold, regret_oracle=oracle)
    )
    assert (simulate(env, Clairvoyant(oracle), range(20)).regret == 0).all()


def test_clairvoyant_needs_revealed_qualities():
    env = parallel_env()
    with pytest.raises(ValueError, match="wrap the environment in Reveal"):
        simulate(env, Clairvoyant(), [0])


@pytest.mark.parametrize("market", ["uniform", "normal"])
def test_random_regret_is_linear(market):
    env = parallel_env(max_cycles=4000, market=market)
    for policy in (UniformRandom(), OneOfEach()):
        curve = simulate(env, policy, range(5))
        per_round = curve.regret.mean(axis=(1, 2)) / curve.rounds
        late = per_round[curve.rounds >= 1000]
        assert late.max() / late.min() < 1.02


@pytest.mark.parametrize("rounds", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("market", ["uniform", pytest.param("normal", marks=pytest.mark.ci)])
def test_ss_ucb_regret_flattens_like_a_logarithm(market, rounds):
    """Over markets whose constraint does not bind: a decade of rounds adds a falling share of regret.

    Where the true constraint binds, optimism violates it nearly every round, and regret is linear at the largest
    rate there is; those markets are told by the clairvoyant's unconstrained purchase.
    """
    seeds = range(5)
    env = parallel_env(max_cycles=rounds, market=market)
    curve = simulate(env, SSUCB(), seeds)
    env.reset_batch(seeds)
    hidden = env.hidden()["quality"]
    observation, _ = env.reset_batch(seeds)
    all_that_pays = np.where(hidden > observation["cost"], observation["capacity"], 0)
    slack = (all_that_pays * (hidden - 0.4)).sum(axis=-1) > 0.02 * all_that_pays.sum(axis=-1)
    regret = curve.regret[:, slack].mean(axis=1)
    first, second, third = (np.interp(n, curve.rounds, regret) for n in (rounds / 100, rounds / 10, rounds))
    print(
        f"\n{market}: {slack.mean():.0%} of agents slack; regret at 1, 10 and 100 % of {rounds} rounds: "
        f"{first:.0f}, {second:.0f}, {third:.0f}; all agents at the end: {curve.regret[-1].mean():.0f}"
    )
    # A power t**a multiplies both regret and its growth a decade by 10**a: linear by 10, a square root by 3.2.
    assert third < 2 * second
    assert third - second < 2 * (second - first)
    random = simulate(parallel_env(max_cycles=100, market=market), UniformRandom(), seeds)
    assert third < 0.01 * rounds / 100 * random.regret[-1, slack].mean()


def test_ss_ucb_follows_its_formula():
    """The first rounds by hand: exploration, then the index of the paper with t counted from 1."""
    env = parallel_env(num_agents=1, num_producers=5, instance_seed=2, max_cycles=50)
    policy = SSUCB(exploration_rounds=2, radius_scale=0.7, margin=0.05)
    observation, _ = env.reset_batch([0])
    policy.reset(env.policy_spec, row_seeds([0], 1))
    for t in range(1, 51):
        action = policy.act(observation)[0, 0].copy()
        if t <= 2:
            np.testing.assert_array_equal(action, 1)
        else:
            units, good = observation["total_delivered"][0, 0], observation["total_good"][0, 0]
            bound = np.minimum(good / units + 0.7 * np.sqrt(3 * np.log(t) / (2 * units)), 1)
            pays = bound > observation["cost"][0, 0]
            everything = np.where(pays, observation["capacity"][0, 0], 0)
            assert (everything * (bound - 0.45)).sum() >= 0
            np.testing.assert_array_equal(action, everything)
        observation = env.step_batch(action[np.newaxis, np.newaxis]).observation


def test_exploration_length_from_zeta():
    policy = SSUCB(zeta=0.5)
    env = parallel_env(num_agents=1, max_cycles=1000)
    policy.reset(env.policy_spec, row_seeds([0], 1))
    observation, _ = env.reset_batch([0])
    rounds = int(np.ceil(3 * np.log(1000) / (2 * 0.25)))
    explored = 0
    while (policy.act(observation) == 1).all():
        explored += 1
        observation = env.step_batch(np.ones((1, 1, 30), np.int32)).observation
    assert explored == rounds


def test_margin_keeps_the_quality_constraint():
    """Near-binding markets: optimism breaks the constraint, a margin restores it."""
    env = parallel_env(max_cycles=3000, quality_threshold=0.7)
    plain, careful = (simulate(env, SSUCB(margin=margin), range(3)) for margin in (0.0, 0.05))
    assert plain.info["violation"].mean() > 0.3
    assert careful.info["violation"].mean() < 0.2 * plain.info["violation"].mean()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"exploration_rounds": -1}, "exploration_rounds is -1"),
        ({"zeta": 0.0}, "zeta is 0.0"),
        ({"radius_scale": -0.5}, "radius_scale is -0.5"),
        ({"margin": 2.0}, "margin is 2.0"),
        ({"oracle": "lp"}, "oracle is 'lp'"),
    ],
)
def test_bad_parameters_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        SSUCB(**kwargs)


def test_a_baseline_refuses_an_environment_it_does_not_play(baseline):
    class Other:
        pass

    with pytest.raises(ValueError, match="env is a Other"):
        baseline.wrap(Other())
