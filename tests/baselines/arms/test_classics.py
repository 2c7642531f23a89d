"""The classic policies: against twins in plain Python, against theory, and where arms sleep or come together."""

from functools import partial

import numpy as np
import pytest
from arms_references import TWINS, UCBHorizon, adjacent

from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.baselines.arms import (
    CUCB,
    UCB1,
    EpsilonGreedyPolicy,
    FairLearn,
    PursuitPolicy,
    SoftmaxPolicy,
    ThompsonSampling,
    UniformArms,
)
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.testing import check_policy
from fedbandit_envs.wrappers.participation import Participation
from fedbandit_envs.wrappers.transport.server import Server


@pytest.mark.parametrize(
    ("name", "constants", "twin"),
    [*((name, {}, twin) for name, twin in TWINS.items()), ("UCB1", {"logarithm": "horizon"}, UCBHorizon)],
)
def test_a_policy_pulls_what_its_twin_does(name, constants, twin):
    rounds = 1000
    env = parallel_env(num_agents=2, max_cycles=rounds)
    policy, seeds = BASELINES[name].make_policy(**constants), row_seeds([3], 2)
    observation = env.reset_batch([3]).observation
    policy.reset(env.policy_spec, seeds)
    twins = [twin(int(seed), 10, rounds) for seed in seeds[0]]
    for t in range(rounds):
        arms = policy.act(observation).copy()
        assert arms[0].tolist() == [one.act() for one in twins], f"round {t + 1}"
        step = env.step_batch(arms)
        for one, arm, reward in zip(twins, arms[0], step.reward[0], strict=True):
            one.learn(arm, reward)
        observation = step.observation


@pytest.mark.parametrize("oracle", ["largest", "arms_references:adjacent"])
def test_cucb_follows_its_formula(oracle):
    rounds, slots = 2000, 3
    env = parallel_env(num_agents=2, num_arms=7, max_cycles=rounds, slots=slots, oracle=oracle)
    policy = CUCB(oracle)
    observation = env.reset_batch([0]).observation
    policy.reset(env.policy_spec, row_seeds([0], 2))
    for _ in range(rounds):
        arms = policy.act(observation)
        n, s = observation["total_pulls"], observation["total_successes"]
        with np.errstate(invalid="ignore", divide="ignore"):
            bounds = np.where(n > 0, s / n + np.sqrt(3 * np.log(rounds) / (2 * n)), np.inf)
        if (n > 0).all():
            best = (
                adjacent(bounds, slots)
                if oracle != "largest"
                else np.argsort(-bounds, kind="stable")[..., :slots]
            )
            np.testing.assert_array_equal(arms, best)
        observation = env.step_batch(arms).observation


@pytest.mark.parametrize("logarithm", ["round", "horizon"])
def test_ucb1_keeps_its_bound(logarithm):
    """Auer et al., Theorem 1: on average over outcomes; each of 20 instances is an average over 20 agents."""
    rounds = 5000
    env = parallel_env(num_agents=20, max_cycles=rounds)
    regret = simulate(env, UCB1(logarithm=logarithm), range(20)).regret[-1].mean(axis=1)
    env.reset_batch(range(20))
    means = env.hidden()["mean"][:, 0]
    gaps = means.max(axis=1, keepdims=True) - means
    inverse = np.divide(1, gaps, out=np.zeros_like(gaps), where=gaps > 0)
    bound = 8 * np.log(rounds) * inverse.sum(axis=1) + (1 + np.pi**2 / 3) * gaps.sum(axis=1)
    assert (regret < bound).all()
    # Nor is it a bound that anything would keep: pulls at random break it on these instances' average.
    random = gaps.mean(axis=1) * rounds
    assert regret.mean() < 0.5 * random.mean()


POLICIES = {
    "UCB1": UCB1,
    "Thompson": ThompsonSampling,
    "epsilon-greedy": partial(EpsilonGreedyPolicy, 0.3),
    "Softmax": SoftmaxPolicy,
    "Pursuit": PursuitPolicy,
    "CUCB": CUCB,
    "uniform": UniformArms,
}


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("name", POLICIES)
def test_superarms_of_arms_that_are_awake(name, slots):
    """Slots are wasted only where fewer arms are awake than there are slots."""
    env = parallel_env(num_agents=3, num_arms=6, max_cycles=300, slots=slots, awake=0.5)
    policy, seeds = POLICIES[name](), range(3)
    observation = env.reset_batch(seeds).observation
    policy.reset(env.policy_spec, row_seeds(seeds, 3))
    for _ in range(300):
        there = observation["awake"].sum(axis=-1)
        step = env.step_batch(policy.act(observation))
        np.testing.assert_array_equal(step.info["wasted"], np.maximum(slots - there, 0))
        observation = step.observation


@pytest.mark.parametrize("name", POLICIES)
def test_rows_stay_rows_where_arms_sleep_and_agents_too(name):
    small = {"num_agents": 3, "num_arms": 5, "awake": 0.7}
    check_policy(POLICIES[name], lambda: parallel_env(**small, slots=2))
    check_policy(POLICIES[name], lambda: Participation(parallel_env(**small), "uniform"))


@pytest.mark.parametrize("make_policy", [PursuitPolicy, UCB1])
def test_who_sits_out_goes_on_where_it_was(make_policy):
    """In turn agents do what they do alone, only slower: probabilities stand still, and t counts own rounds."""
    actions = []
    for env in (parallel_env(num_agents=2), Participation(parallel_env(num_agents=2), "in_turn")):
        policy, played = make_policy(), []
        observation = env.reset_batch([0]).observation
        policy.reset(env.policy_spec, row_seeds([0], 2))
        pulls = np.zeros((1, 2, 10), np.int64)
        for t in range(200):
            arms = policy.act(observation).copy()
            if t % 2 == 0 or "active" not in observation:
                played.append(arms[0, 0])
            # Outcomes of our own, that do not depend on the round.
            active = observation.get("active", np.ones((1, 2, 1), np.bool_))
            pulls += (np.arange(10) == arms[..., np.newaxis]) & active
            seen = {"total_pulls": pulls, "total_successes": np.minimum(pulls, np.arange(10))}
            observation = {
                **env.step_batch(arms).observation,
                **{name: array.copy() for name, array in seen.items()},
            }
        actions.append(played[:100])
    assert actions[0] == actions[1]


def test_uniform_arms_are_uniform():
    """Chi-square with 9 degrees of freedom: above 33.7 in 1 of 10,000 runs, were the seeds not fixed."""
    env = parallel_env(num_agents=10, max_cycles=500)
    policy = UniformArms()
    observation = env.reset_batch(range(4)).observation
    policy.reset(env.policy_spec, row_seeds(range(4), 10))
    for _ in range(500):
        observation = env.step_batch(policy.act(observation)).observation
    counts = observation["total_pulls"].sum(axis=(0, 1))
    assert ((counts - 2000) ** 2 / 2000).sum() < 33.7


def test_what_agents_hear_of_themselves_is_refused():
    env = Server(parallel_env(), schedule="every_round")
    for policy in (UCB1(), FairLearn()):
        with pytest.raises(UnfitError, match="echo=False is required"):
            policy.reset(env.policy_spec, row_seeds([0], 10))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EpsilonGreedyPolicy(1.5), "epsilon is 1.5"),
        (lambda: UCB1(scale=0), "scale is 0"),
        (lambda: UCB1(logarithm="rounds"), "logarithm is 'rounds'"),
        (lambda: SoftmaxPolicy(0.001), "temperature is 0.001"),
        (lambda: PursuitPolicy(0), "rate is 0"),
        (lambda: CUCB("best"), "oracle is 'best'"),
        (lambda: UCB1(pool="mean"), "pool name is 'mean'"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
