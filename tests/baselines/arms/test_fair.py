"""FAIR-LEARN: promises kept, the learner's arm otherwise, and regret that leaves out what was promised."""

import numpy as np
import pytest

from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.baselines.arms import UCB1, FairLearn
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.randomness.streams import row_seeds


class AlwaysLast:
    """Pulls the last arm."""

    def reset(self, spec, seeds):
        self._arm = np.full(seeds.shape, spec.action.n - 1)

    def act(self, observation):
        return self._arm


@pytest.mark.parametrize("tolerance", [0.0, 2.5])
@pytest.mark.parametrize(
    "learner", ["UCB1", "ThompsonSampling", {"name": "EpsilonGreedyPolicy", "epsilon": 0.2}]
)
def test_it_follows_algorithm_4_1(learner, tolerance):
    shares = [0.3, 0.05, 0.0, 0.1]
    env = parallel_env(num_agents=3, num_arms=4, max_cycles=1000)
    fair, alone = FairLearn(learner, shares, tolerance), FairLearn(learner, 0.0)
    observation = env.reset_batch([0, 1]).observation
    for policy in (fair, alone):
        policy.reset(env.policy_spec, row_seeds([0, 1], 3))
    for t in range(1, 1001):
        arms, learnt = fair.act(observation), alone.act(observation)
        for row in np.ndindex(2, 3):
            lack = [
                share * (t - 1) - n for share, n in zip(shares, observation["total_pulls"][row], strict=True)
            ]
            assert arms[row] == (lack.index(max(lack)) if max(lack) > tolerance else learnt[row])
        observation = env.step_batch(arms).observation
        # Patil et al., Theorem 1: at any time, not at the end alone.
        assert (np.floor(np.array(shares) * t) - observation["total_pulls"] <= tolerance + 1e-9).all()


def test_a_learner_that_is_given_is_asked():
    env = parallel_env(num_agents=1, num_arms=3)
    policy = FairLearn(AlwaysLast(), [0.5, 0.0, 0.0])
    observation = env.reset_batch([0]).observation
    policy.reset(env.policy_spec, row_seeds([0], 1))
    for _ in range(10):
        observation = env.step_batch(policy.act(observation)).observation
    assert observation["total_pulls"][0, 0].tolist() == [5, 0, 5]


def test_sleeping_arms_are_not_forced():
    env = parallel_env(num_agents=5, num_arms=4, max_cycles=500, awake=0.5)
    policy = FairLearn(shares=0.2)
    observation = env.reset_batch([0]).observation
    policy.reset(env.policy_spec, row_seeds([0], 5))
    for _ in range(500):
        there = observation["awake"].any(axis=-1)
        step = env.step_batch(policy.act(observation))
        np.testing.assert_array_equal(step.info["wasted"], ~there)
        observation = step.observation
    assert (observation["total_pulls"] > 80).all()


def test_r_regret_by_hand():
    fair = FairLearn(shares=[0.29, 0.1, 0.0], tolerance=1.0)
    means, pulls = np.array([0.2, 0.5, 0.9]), np.array([30, 5, 65])
    # 0.29 * 100 is 28.999999999999996 in floating point, and 29 pulls are meant.
    expected = 0.7 * (30 - (29 - 1)) + 0.4 * (5 - (10 - 1))
    assert fair.r_regret(means, pulls, 100) == pytest.approx(expected)
    assert FairLearn(shares=0.0).r_regret(means, pulls, 100) == pytest.approx(0.7 * 30 + 0.4 * 5)


def test_what_is_forced_is_no_regret():
    """Shares of 0.05 cost UCB1 regret for ever; r-regret stays that of a learner."""
    env = parallel_env(max_cycles=5000)
    policy, seeds = FairLearn(shares=0.05), range(5)
    observation = env.reset_batch(seeds).observation
    policy.reset(env.policy_spec, row_seeds(seeds, 10))
    regret = np.zeros((5, 10))
    for _ in range(5000):
        step = env.step_batch(policy.act(observation))
        observation, regret = step.observation, regret + step.info["regret"]
    r_regret = policy.r_regret(env.hidden()["mean"], observation["total_pulls"], 5000)
    assert regret.mean() > 500
    assert r_regret.mean() < 0.4 * regret.mean()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"shares": [0.6, 0.6]}, "shares add up to 1.2"),
        ({"shares": [-0.1, 0.6]}, r"shares\[0\] is -0.1"),
        ({"shares": 1.5}, "shares is 1.5"),
        ({"tolerance": -1}, "tolerance is -1"),
        ({"learner": "LinUCB"}, "learner name is 'LinUCB'"),
        ({"learner": {"epsilon": 0.1}}, "learner name is None"),
    ],
)
def test_bad_parameters_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        FairLearn(**kwargs)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (7, "learner is 7"),
        (object(), "a mapping with a name"),
        ({"name": "UCB1", "scal": 1}, "learner 'UCB1' with arguments {'scal': 1}"),
    ],
)
def test_a_learner_must_be_a_policy(learner, message):
    with pytest.raises(TypeError, match=message):
        FairLearn(learner)


@pytest.mark.parametrize(
    ("env_kwargs", "shares", "message"),
    [
        ({"slots": 2}, 0.1, "FAIR-LEARN pulls one arm"),
        ({}, [0.1, 0.1], "shares has 2 entries; 10"),
        ({}, 0.11, "shares add up to 1.1"),
    ],
)
def test_promises_that_cannot_be_kept_are_refused(env_kwargs, shares, message):
    env = parallel_env(**env_kwargs)
    with pytest.raises(UnfitError, match=message):
        FairLearn(UCB1(), shares).reset(env.policy_spec, row_seeds([0], 10))
