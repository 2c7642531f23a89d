"""Gaussian arms: means, worths, rewards and regret.

Distributions are tested at 1e-4 each, under fixed seeds: of the 3 such tests one in 3,300 sets of seeds would raise a
false alarm. Averages are compared with 6 standard errors.
"""

import numpy as np
import pytest
from played import begun
from refusals import refusals
from scipy import stats

from fedbandit_envs.core.privacy import AGENT
from fedbandit_envs.gaussian_v0 import parallel_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import ContinualPrivatizer

LEVEL = 1e-4
COMMON = (0.70, 0.71, 0.72, 0.73, 0.74, 0.75, 0.76, 0.765, 0.77, 0.79)


@pytest.mark.parametrize(("agents", "low", "high"), [(5, 0.2, 4.2), (10, 0.1, 9.1), (1, 1.0, 1.0)])
def test_the_exact_setting_is_the_papers(agents, low, high):
    env = begun(make_federation("FedGaussian-v0", num_agents=agents), [3])
    mean, worth = env.hidden()["mean"][0], env.hidden()["worth"][0]
    factors = np.full((agents, 10), low)
    for k in range(10):
        factors[k if k < agents else 9 - k if agents > 1 else 0, k] = high
    np.testing.assert_allclose(mean, factors * COMMON, rtol=1e-12)
    np.testing.assert_allclose(worth, np.tile(COMMON, (agents, 1)), rtol=1e-12)


@pytest.mark.parametrize("regret", ["own", 1.0, "federation", 0.0, 0.3])
def test_worths_lie_between_own_and_global_means(regret):
    own = np.array([[1.0, 0.0, 0.4], [0.2, 0.9, 0.1], [0.0, 0.3, 0.7]])
    alpha = {"own": 1.0, "federation": 0.0}.get(regret, regret)
    env = begun(parallel_env(means=own.tolist(), regret=regret, reward_sd=0.0))
    worth = alpha * own + (1 - alpha) * own.mean(axis=0)
    np.testing.assert_allclose(env.hidden()["worth"][0], worth)
    assert env.public == {"alpha": alpha, "reward_sd": 0.0, "spread": 0.0}
    for k in range(3):
        step = env.step_batch(np.full((1, 3), k))
        np.testing.assert_allclose(step.info["regret"][0], worth.max(axis=1) - worth[:, k], atol=1e-15)
        np.testing.assert_array_equal(step.reward[0], own[:, k])


def test_drawn_means_lie_around_the_law_s_and_the_global_ones_are_the_law_s():
    env = begun(make_federation("FedGaussianSampled-v0", spread=0.3), range(20))
    apart = (env.hidden()["mean"] - COMMON) / 0.3
    assert stats.kstest(apart.ravel(), "norm").pvalue > LEVEL
    np.testing.assert_array_equal(env.hidden()["worth"], np.broadcast_to(COMMON, apart.shape))
    other = begun(make_federation("FedGaussianSampled-v0", spread=0.3, num_agents=7), [4])
    np.testing.assert_array_equal(other.hidden()["mean"][0], env.hidden()["mean"][4, :7])


def test_means_without_any_are_uniform_and_each_agent_s_own():
    env = begun(parallel_env(num_arms=20, num_agents=5, regret="federation"), range(20))
    mean = env.hidden()["mean"]
    assert stats.kstest(mean.ravel(), "uniform").pvalue > LEVEL
    np.testing.assert_allclose(
        env.hidden()["worth"], np.broadcast_to(mean.mean(axis=1, keepdims=True), mean.shape)
    )
    fewer = begun(parallel_env(num_arms=20, num_agents=2), [3])
    np.testing.assert_array_equal(fewer.hidden()["mean"][0], mean[3, :2])


def test_more_agents_than_means_repeat_them():
    env = begun(make_federation("FedMixed-v0", num_agents=6))
    mean = env.hidden()["mean"][0]
    np.testing.assert_array_equal(mean[4:], mean[:2])
    np.testing.assert_allclose(env.hidden()["worth"][0], 0.5 * mean + 0.5 * mean.mean(axis=0))


def rewards(env, rounds, seeds, arm):
    env.reset_batch(seeds)
    shape = len(seeds), env.max_num_agents
    return np.stack([env.step_batch(np.full(shape, arm)).reward.copy() for _ in range(rounds)])


def test_rewards_are_normal_and_follow_from_arm_and_round_alone():
    env = parallel_env(means=[0.5, 7.0], num_agents=3, reward_sd=2.0, max_cycles=500)
    drawn = rewards(env, 500, (0, 1), 1)
    assert stats.kstest(((drawn - 7) / 2).ravel(), "norm").pvalue > LEVEL
    other = begun(parallel_env(means=[0.5, 7.0], num_agents=3, reward_sd=2.0, max_cycles=500), [0, 1])
    for t in range(100):
        arm = np.full((2, 3), t % 2)
        found = other.step_batch(arm).reward
        if t % 2:
            np.testing.assert_array_equal(found, drawn[t])


def test_a_bound_clips_and_counts():
    free = rewards(parallel_env(means=[1.0], num_agents=2), 400, (0,), 0)
    env = begun(parallel_env(means=[1.0], num_agents=2, reward_bound=1.5))
    for t in range(400):
        step = env.step_batch(np.zeros((1, 2), np.int64))
        np.testing.assert_array_equal(step.reward, np.clip(free[t], -1.5, 1.5))
        np.testing.assert_array_equal(step.info["clipped"], abs(free[t]) > 1.5)
    np.testing.assert_allclose(
        step.observation["total_rewards"][0, :, 0], np.clip(free, -1.5, 1.5).sum(axis=0)[0], rtol=1e-12
    )
    assert (env.largest_reward() == 1.5).all()


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"means": [20.0, -80.0]}, "80"),
        ({"means": [[0.2, 1.5], [0.1, 0.3]]}, "1.5"),
        ({"means": [0.5, 0.5], "law": "concentrated", "num_agents": 4}, "1.625"),
        ({}, "1"),
    ],
)
def test_means_beyond_the_bound_on_rewards_are_refused(settings, least):
    """They would be paid clipped and regretted unclipped."""
    with pytest.raises(ValueError, match=rf"reward_bound is .*; at least {least}, the largest mean"):
        parallel_env(**settings, reward_bound=0.99 * float(least))
    parallel_env(**settings, reward_bound=float(least))


def test_nothing_is_claimed_without_a_bound():
    env = begun(parallel_env(num_agents=2))
    assert env.largest_reward() is None
    with pytest.raises(ValueError, match=r"'rewards'.*required"):
        ContinualPrivatizer(env, epsilon=1.0, delta=0.1).reset_batch([0])
    clipped = begun(ContinualPrivatizer(env, epsilon=1.0, delta=0.1, clip=3.0, adjacency=AGENT))
    for _ in range(4):
        clipped.step_batch(np.zeros((1, 2), np.int64))
        clipped.release(np.ones((1, 2), bool))
    assert clipped.privacy().epsilon <= 1.0
    assert clipped.privacy().adjacency == AGENT


test_wrong_arguments_are_refused = refusals(
    lambda wrong: parallel_env(**wrong),
    ({"law": "near"}, "law is 'near'"),
    ({"spread": 0.1}, r"spread is 0\.1; 0 is required with law='exact'"),
    ({"spread": 0.1, "law": "concentrated"}, "0 is required with law='concentrated'"),
    ({"means": [[0.1, 0.2]], "law": "approximate"}, r"means has shape \(1, 2\); \(arms,\) is required"),
    ({"means": []}, r"means has shape \(0,\)"),
    ({"regret": 1.5}, r"regret is 1\.5"),
    error=ValueError,
)  # fmt: skip
