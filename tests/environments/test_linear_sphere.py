"""Zhou and Chowdhury's environment: distributions, rewards, and the statistic without squared rewards.

Distributions are tested at 1e-4 each, under fixed seeds: of the 8 such tests one in 1,250 sets of seeds would raise a
false alarm. Standard deviations are compared with 6 standard errors.
"""

from math import sqrt

import numpy as np
import pytest
from linear_offers import of_arms, offers, points_evenly, random_rounds
from played import begun
from scipy import optimize

from fedbandit_envs.linear_v0 import parallel_env

SPHERE = {"contexts": "sphere_and_bias", "parameter": "sphere_without_bias", "reward": "normal"}


def sphere(**kwargs):
    return parallel_env(**{"num_agents": 3, "num_arms": 9, "dim": 4, **SPHERE, **kwargs})


def features(contexts):
    """Contexts with the last entry scaled to 1, which are the features before they were normalised."""
    return contexts / contexts[..., -1:]


@pytest.mark.parametrize("bound", [1.0, 2.0])
@pytest.mark.parametrize("dim", [3, 5])
def test_contexts(dim, bound):
    contexts, _ = offers(200, 3, dim=dim, num_arms=dim + 4, num_agents=2, context_bound=bound, **SPHERE)
    np.testing.assert_allclose(np.linalg.norm(contexts, axis=-1), bound, rtol=1e-12)
    fixed = np.eye(dim)
    fixed[: dim - 1, -1] = 1.0
    fixed[: dim - 1] /= sqrt(2)
    np.testing.assert_allclose(
        contexts[..., :dim, :], np.broadcast_to(bound * fixed, (200, 3, 2, dim, dim)), atol=1e-12
    )
    drawn = contexts[..., dim:, :]
    np.testing.assert_allclose(drawn[..., -1], bound / sqrt(2), rtol=1e-12)
    u = drawn[..., :-1] * sqrt(2) / bound
    assert points_evenly(u.reshape(-1, dim - 1), 1)
    # Neighbours along each axis (rounds, replicas, agents, arms) are independent.
    for axis in range(4):
        one, two = u.swapaxes(0, axis)[:-1], u.swapaxes(0, axis)[1:]
        products = (one * two).sum(axis=-1).ravel()
        # The mean of the product is 0 and its variance 1 / (dim - 1); chained products are uncorrelated.
        assert abs(products.mean()) < 4.5 / sqrt((dim - 1) * products.size)


def test_as_many_arms_as_dimensions_are_all_fixed():
    contexts, _ = offers(3, dim=4, num_arms=4, num_agents=2, **SPHERE)
    assert (contexts == contexts[0, 0, 0]).all()


def test_the_parameter():
    theta = begun(sphere(num_agents=1), range(1000)).hidden()["parameter"][:, 0]
    assert (theta[:, -1] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), sqrt(0.5))
    assert points_evenly(theta[:, :-1] * sqrt(2), 1)


@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_means_are_those_of_features_that_are_not_normalised(offset):
    """With theta = (v / 2, 1/2) for a unit vector v: <theta, features> - 1/2, and the offset."""
    env = sphere(reward_sd=0.0, reward_offset=offset)
    for before, action, reward, info, _ in random_rounds(env, 40):
        v = env.hidden()["parameter"][..., :-1] * sqrt(2)
        theta = 0.5 * np.concatenate([v, np.ones((*v.shape[:2], 1))], axis=-1)
        means = np.einsum("rjkd,rjd->rjk", features(before["contexts"]), theta)
        assert means.min() >= 0
        assert means.max() <= 1
        mean = of_arms(means, action)
        np.testing.assert_allclose(reward, mean - 0.5 + offset, atol=1e-12)
        np.testing.assert_allclose(info["regret"], means.max(axis=-1) - mean, atol=1e-12)


def test_an_offset_moves_rewards_before_they_are_clipped_and_not_regret():
    wide = list(random_rounds(sphere(reward_sd=0.5, reward_bound=1e6), 60))
    for offset in (-1.2, 0.7):
        clips = 0
        env = sphere(reward_sd=0.5, reward_bound=1.0, reward_offset=offset)
        for (x, _, raw, free, _), (same, _, reward, info, seen) in zip(
            wide, random_rounds(env, 60), strict=True
        ):
            np.testing.assert_array_equal(same["contexts"], x["contexts"])
            np.testing.assert_array_equal(info["regret"], free["regret"])
            np.testing.assert_allclose(reward, np.clip(raw + offset, -1, 1), atol=1e-12)
            np.testing.assert_array_equal(seen["last_reward"][..., 0], reward)
            np.testing.assert_array_equal(info["clipped"], np.abs(raw + offset) > 1)
            clips += int(info["clipped"].sum())
        assert 0 < clips < 360


def test_moments_are_outer_products_without_the_squares_of_rewards():
    envs = sphere(), sphere(statistic="moments")
    for outer, moments in zip(*(random_rounds(env, 30) for env in envs), strict=True):
        for name, array in outer[-1].items():
            if name == "total_statistic":
                assert (array[..., -1, -1] > 0).all()
                array[..., -1, -1] = 0.0
            np.testing.assert_array_equal(moments[-1][name], array)
        np.testing.assert_array_equal(moments[2], outer[2])


BOUNDS = [(1.0, 0.5), (1.0, 1.0), (1.0, 1.5), (2.0, 1.5), (2.0, 4.0), (0.5, 1.0), (3.0, 3 * sqrt(2))]


def event(contexts, rewards):
    """[x; y][x; y]^T with 0 for y^2, of one or many."""
    rewards = np.broadcast_to(rewards, contexts.shape[:-1])
    both = np.concatenate([contexts, rewards[..., np.newaxis]], axis=-1)
    made = both[..., np.newaxis] * both[..., np.newaxis, :]
    made[..., -1, -1] = 0.0
    return made


def norm(change, scale):
    """The Frobenius norm in units of the scale, of the entries that are not always 0."""
    units = np.divide(change, scale, out=np.zeros_like(change), where=scale > 0)
    return np.linalg.norm(units, axis=(-2, -1))


def declared(length, bound, dim):
    env = parallel_env(dim=dim, contexts="unit_ball", reward="normal", context_bound=length, reward_bound=bound,
                       statistic="moments")  # fmt: skip
    env.reset_batch([0])
    told = env.sensitivity()
    assert list(told.changes) == ["one-observation", "one-observation-added"]
    assert told.symmetric
    return (
        told.changes["one-observation"],
        told.changes["one-observation-added"],
        told.scale["statistic"][0, 0],
    )


@pytest.mark.parametrize(("length", "bound"), BOUNDS)
def test_the_declared_norms_are_the_largest(length, bound):
    """Random pairs never exceed them, and a numerical search attains them and no more."""
    dim, generator = 3, np.random.default_rng(0)
    replaced, added, scale = declared(length, bound, dim)
    assert scale[-1, -1] == 0

    def in_the_ball(points):
        return length * points / np.maximum(1.0, np.linalg.norm(points, axis=-1, keepdims=True))

    x, y = in_the_ball(generator.standard_normal((2, 20_000, dim)))
    r, s = bound * generator.choice([-1.0, 1.0, 0.3], (2, 20_000))
    assert norm(event(x, r) - event(y, s), scale).max() <= replaced.norm * (1 + 1e-12)
    assert norm(event(x, r), scale).max() <= added.norm * (1 + 1e-12)

    def gain(free, sign):
        x, y = in_the_ball(
            2 * free.reshape(2, dim) / np.linalg.norm(free.reshape(2, dim), axis=1, keepdims=True)
        )
        return -norm(event(x, bound) - event(y, sign * bound), scale)

    starts = [(generator.standard_normal(2 * dim), sign) for sign in (-1.0, 1.0) for _ in range(4)]
    best = -min(optimize.minimize(gain, start, args=(sign,)).fun for start, sign in starts)
    assert best == pytest.approx(replaced.norm, rel=1e-6)
    assert norm(event(length * np.eye(dim)[0], bound), scale) == pytest.approx(added.norm, rel=1e-12)


@pytest.mark.parametrize(("length", "bound"), [*BOUNDS, (0.2, 3.0)])
def test_claims_that_count_entries_cover_entries_that_differ_by_more_than_their_scale(length, bound):
    """Of a Laplace mechanism: epsilon for each entry and scale by which it differs; of a Gaussian one: its square."""
    dim, generator = 2, np.random.default_rng(0)
    *told, scale = declared(length, bound, dim)
    x, y = generator.standard_normal((2, 5000, dim))
    x, y = (length * points / np.linalg.norm(points, axis=1, keepdims=True) for points in (x, y))
    x[0], y[0] = length * sqrt(0.5), length * sqrt(0.5)
    apart = event(x, bound) - event(y, -bound)
    for change, differs in zip(told, (apart, event(x, bound)), strict=True):
        units = np.abs(differs[:, scale > 0] / scale[scale > 0])
        assert units.sum(axis=1).max() <= change.values
        assert np.square(units).sum(axis=1).max() <= change.values + 1e-9
    # In the registered environments a count of entries is enough.
    assert [change.values for change in declared(1.0, 5.0, 10)[:2]] == [120, 120]
