"""Index and draws from posteriors, by independent computations."""

import numpy as np
import pytest
from scipy.stats import beta, kstest

from fedbandit_envs.baselines.procurement.silent import LaplaceIndex, ThompsonProcurement
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds


def test_laplace_index_by_hand():
    # A threshold so low that all that pays may be bought.
    env = parallel_env(num_agents=2, num_producers=5, instance_seed=2, max_cycles=30, quality_threshold=0.1)
    policy = LaplaceIndex(0.6)
    observation, _ = env.reset_batch([0])
    policy.reset(env.policy_spec, row_seeds([0], 2))
    for _ in range(30):
        units, good = observation["total_delivered"], observation["total_good"]
        index = np.minimum((good + 1) / (units + 2) + 0.6 / np.sqrt(units + 1), 1)
        pays = np.where(index > observation["cost"], observation["capacity"], 0)
        assert (pays * (index - 0.1)).sum(axis=-1).min() >= 0
        action = policy.act(observation)
        np.testing.assert_array_equal(action, pays)
        observation = env.step_batch(action).observation


def test_thompson_draws_from_the_posterior():
    """By Kolmogorov and Smirnov, at 1e-4."""
    env = parallel_env(num_agents=20, num_producers=30, max_cycles=5)
    policy = ThompsonProcurement()
    observation, _ = env.reset_batch(range(4))
    policy.reset(env.policy_spec, row_seeds(range(4), 20))
    for _ in range(2):
        observation = env.step_batch(policy.act(observation)).observation
    policy.act(observation)
    units, good = observation["total_delivered"], observation["total_good"]
    place = beta.cdf(policy._quality, good + 1, units - good + 1)
    assert kstest(place.ravel(), "uniform").pvalue > 1e-4


def test_tuned_width_beats_greed_and_worry():
    env = parallel_env(max_cycles=300)
    regret = [simulate(env, LaplaceIndex(width), range(8)).regret[-1].mean() for width in (0.0, 0.8, 5.0)]
    assert regret[1] < 0.5 * regret[0]
    assert regret[1] < 0.5 * regret[2]


@pytest.mark.parametrize(("width", "error"), [(-1.0, ValueError), ("wide", TypeError)])
def test_bad_width_is_named(width, error):
    with pytest.raises(error, match="width is"):
        LaplaceIndex(width)
