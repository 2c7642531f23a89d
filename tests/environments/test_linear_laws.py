"""Laws of contexts and rewards in linear problems.

Laws are tested at 1e-4 each, under fixed seeds: of the 29 of them one in 345 sets of seeds would raise a
false alarm.
"""

import numpy as np
import pytest
from linear_offers import LEVEL, offers, points_evenly
from numba import njit
from scipy import stats
from scipy.special import betainc, betaincinv
from threefry_reference import threefry as reference

from fedbandit_envs.linear.rounds import TERMS, arcsine_quantile
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import Purpose, row_keys


def is_uniform(sample, low=0.0, width=1.0):
    return stats.kstest(np.ravel(sample), "uniform", (low, width)).pvalue > LEVEL


@pytest.mark.parametrize(("dim", "num_arms"), [(3, 5), (6, 7)])
def test_the_band(dim, num_arms):
    """Means are uniform on their intervals, the rest uniform in its ball, the best arm anywhere."""
    contexts, theta = offers(1500, dim=dim, num_arms=num_arms, num_agents=2)
    means = np.einsum("trjkd,rd->trjk", contexts, theta)
    best = means.argmax(axis=-1)
    assert stats.chisquare(np.bincount(best.ravel(), minlength=num_arms)).pvalue > LEVEL
    is_best = np.arange(num_arms) == best[..., np.newaxis]
    assert is_uniform(means[is_best], 0.7, 0.1)
    assert is_uniform(means[~is_best], 0.5, 0.1)
    across = contexts - means[..., np.newaxis] * theta[:, np.newaxis, np.newaxis]
    length = np.linalg.norm(across, axis=-1)
    # In a ball of dimension d - 1, (length / radius)^(d - 1) is uniform.
    assert is_uniform((length / np.sqrt(1 - means**2)) ** (dim - 1))
    # One coordinate of the directions across theta*, in a basis of what is across it.
    basis = np.stack([np.linalg.svd(one[np.newaxis])[2][1:] for one in theta])
    direction = np.einsum("trjkd,rid->trjki", across, basis) / length[..., np.newaxis]
    assert points_evenly(direction.reshape(-1, dim - 1))


@pytest.mark.parametrize("dim", [2, 5])
def test_the_ball(dim):
    contexts, _ = offers(
        500, dim=dim, num_arms=6, num_agents=2, contexts="unit_ball", reward="normal", context_bound=2.0
    )
    length = np.linalg.norm(contexts, axis=-1)
    assert is_uniform((length / 2.0) ** dim)
    assert points_evenly((contexts / length[..., np.newaxis]).reshape(-1, dim))


@pytest.mark.parametrize(("law", "low", "width"), [("hypercube", 0.0, 1.0), ("signed_hypercube", -1.0, 2.0)])
def test_the_cubes(law, low, width):
    contexts, _ = offers(500, dim=3, num_arms=6, num_agents=2, contexts=law, reward="normal")
    for i in range(3):
        assert is_uniform(contexts[..., i] * np.sqrt(3), low, width)


def test_the_cube_is_made_of_the_words_of_its_counters():
    """Word by word, by an implementation of the definition that shares nothing with the compiled one."""
    arms, dim = 5, 3
    contexts, _ = offers(3, 1, dim=dim, num_arms=arms, num_agents=2, contexts="hypercube", reward="normal")
    keys = row_keys([0], 2, Purpose.CONTEXT)[0]
    for t in range(3):
        for j in range(2):
            pairs = [reference(tuple(int(word) for word in keys[j]), (t, lane), 13) for lane in range(16)]
            words = np.array(pairs, np.float64).T.reshape(-1)[: arms * dim].reshape(dim, arms)
            expected = (words.T + 0.5) / 2**32 / np.sqrt(dim)
            np.testing.assert_allclose(contexts[t, 0, j], expected, rtol=1e-15)


def paid(reward, mean, rounds=100, **kwargs):
    """Rewards of one arm with this mean."""
    env = parallel_env(
        num_agents=100, contexts=[[mean]], parameter=[1.0], reward=reward, max_cycles=rounds, **kwargs
    )
    env.reset_batch([0])
    action = np.zeros((1, 100), np.int64)
    return np.concatenate([env.step_batch(action).reward[0].copy() for _ in range(rounds)])


@pytest.mark.parametrize("mean", [0.02, 0.5, 0.75])
def test_rewards(mean):
    """Beta(mu, 1 - mu), Bernoulli(mu) and N(mu, sd^2), the last one between its clips."""
    assert stats.kstest(paid("beta", mean), stats.beta(mean, 1 - mean).cdf).pvalue > LEVEL
    wins = paid("bernoulli", mean)
    assert stats.binomtest(int(wins.sum()), wins.size, mean).pvalue > LEVEL
    normal = paid("normal", mean, reward_sd=0.2, reward_bound=10.0)
    assert stats.kstest(normal, stats.norm(mean, 0.2).cdf).pvalue > LEVEL


@njit
def quantiles(mean, probability):
    found, scratch = np.empty(mean.size), np.empty(TERMS)
    for i in range(mean.size):
        found[i] = arcsine_quantile(mean[i], probability[i], scratch)
    return found


@pytest.mark.parametrize("low", [0.5, 0.1, 1e-3])
def test_the_arcsine_laws_quantiles(low):
    """As scipy's, to 1e-12; the smallest and the largest probabilities that there are among them."""
    rng = np.random.default_rng(1)
    mean = rng.uniform(low, 1 - 0.9 * low, 20_000)
    probability = rng.random(mean.size)
    probability[:50], probability[50:100] = 2.0**-53 * np.arange(50), 1 - 2.0**-53 * np.arange(1, 51)
    expected = betaincinv(mean, 1 - mean, probability)
    np.testing.assert_allclose(quantiles(mean, probability), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mean", [1e-9, 1e-5, 1 - 1e-5, 1 - 1e-9])
def test_quantiles_of_extreme_means(mean):
    """Where one bit of a probability moves a quantile far: what is left is that probabilities come back."""
    probability = (
        1 - mean + mean * np.random.default_rng(2).uniform(-1, 1, 2000) * min(1.0, (1 - mean) / mean)
    )
    probability = probability[(probability > 0) & (probability < 1)]
    found = quantiles(np.full(probability.size, mean), probability)
    assert ((found >= 0) & (found <= 1)).all()
    # x or 1 - x rounds to a float64, which moves F by at most as much as at the last one.
    inside = (found > 1e-3) & (found < 1 - 1e-3)
    assert inside.any()
    np.testing.assert_allclose(
        betainc(mean, 1 - mean, found[inside]), probability[inside], rtol=0, atol=1e-12
    )
