"""Zhou and Chowdhury's environment: distributions, rewards, and the statistic without squared rewards.

Distributions are tested at 1e-4 each, under fixed seeds: of the 8 such tests one in 1,250 sets of seeds would raise a
false alarm. Standard deviations are compared with 6 standard errors.
"""

from math import inf, sqrt

import numpy as np
import pytest
from linear_offers import offers
from scipy import optimize, stats
from zhou_reference import offers as features_of

from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import ContinualPrivatizer

LEVEL = 1e-4
SPHERE = {"contexts": "sphere_and_bias", "parameter": "sphere_without_bias", "reward": "normal"}


def sphere(**kwargs):
    return parallel_env(**{"num_agents": 3, "num_arms": 9, "dim": 4, **SPHERE, **kwargs})


def points_evenly(directions):
    """Says whether unit vectors, ``(many, dim)``, are uniform on the sphere, by one coordinate's distribution."""
    half = (directions.shape[1] - 1) / 2
    return stats.kstest((directions[:, 1] + 1) / 2, stats.beta(half, half).cdf).pvalue > LEVEL


def features(contexts):
    """Contexts with the last entry scaled to 1, which are the features before they were normalised."""
    return contexts / contexts[..., -1:]


def played(env, rounds, seeds=(0, 1), arms_seed=5):
    """Random arms: contexts, arms and copies of the steps, round by round."""
    generator = np.random.default_rng(arms_seed)
    contexts = env.reset_batch(seeds).observation["contexts"].copy()
    arms = env.single_observation_space["contexts"].shape[0]
    for _ in range(rounds):
        action = generator.integers(0, arms, contexts.shape[:2])
        step = env.step_batch(action)
        copied = {name: array.copy() for name, array in step.observation.items()}
        yield contexts, action, copied, step.reward.copy(), {k: v.copy() for k, v in step.info.items()}
        contexts = copied["contexts"]


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
    assert points_evenly(u.reshape(-1, dim - 1))
    # Neighbours along each axis (rounds, replicas, agents, arms) are independent.
    for axis in range(4):
        one, two = u.swapaxes(0, axis)[:-1], u.swapaxes(0, axis)[1:]
        products = (one * two).sum(axis=-1).ravel()
        # The mean of the product is 0 and its variance 1 / (dim - 1); chained products are uncorrelated.
        assert abs(products.mean()) < 4.5 / sqrt((dim - 1) * products.size)


def test_as_many_arms_as_dimensions_are_all_fixed():
    contexts, _ = offers(3, dim=4, num_arms=4, num_agents=2, **SPHERE)
    assert (contexts == contexts[0, 0, 0]).all()


@pytest.mark.parametrize(("arms", "dim"), [(3, 4), (5, 1)])
def test_too_few_arms_or_dimensions_are_refused(arms, dim):
    with pytest.raises(ValueError, match=f"num_arms is {arms} and dim {dim}; at least 2 dimensions"):
        parallel_env(num_arms=arms, dim=dim, contexts="sphere_and_bias", parameter="sphere", reward="normal")


def test_a_parameter_without_bias_needs_two_dimensions():
    with pytest.raises(ValueError, match="dim is 1; at least 2 is required"):
        parallel_env(
            num_arms=2, dim=1, contexts="unit_ball", parameter="sphere_without_bias", reward="normal"
        )


def test_the_parameter():
    env = sphere(num_agents=1)
    env.reset_batch(range(4000))
    theta = env.hidden()["parameter"][:, 0]
    assert (theta[:, -1] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), sqrt(0.5))
    assert points_evenly(theta[:, :-1] * sqrt(2))


@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_means_are_those_of_features_that_are_not_normalised(offset):
    """With theta = (v / 2, 1/2) for a unit vector v: <theta, features> - 1/2, and the offset."""
    env = sphere(reward_sd=0.0, reward_offset=offset)
    rounds = played(env, 40)
    for contexts, action, _, reward, info in rounds:
        v = env.hidden()["parameter"][..., :-1] * sqrt(2)
        theta = 0.5 * np.concatenate([v, np.ones((*v.shape[:2], 1))], axis=-1)
        means = np.einsum("rjkd,rjd->rjk", features(contexts), theta)
        assert means.min() >= 0
        assert means.max() <= 1
        mean = np.take_along_axis(means, action[..., np.newaxis], axis=-1)[..., 0]
        np.testing.assert_allclose(reward, mean - 0.5 + offset, atol=1e-12)
        np.testing.assert_allclose(info["regret"], means.max(axis=-1) - mean, atol=1e-12)


def test_the_twin_offers_the_same_kind_of_arms():
    """The features that the reference normalises are the environment's: fixed arms equal, others of the same norm."""
    theirs = features_of(np.random.default_rng(0), 2, 3, 9, 4)
    ours = features(sphere().reset_batch([0, 1]).observation["contexts"])
    np.testing.assert_allclose(ours[..., :4, :], theirs[..., :4, :], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(ours, axis=-1), np.linalg.norm(theirs, axis=-1))


def test_an_offset_moves_rewards_before_they_are_clipped_and_not_regret():
    wide = list(played(sphere(reward_sd=0.5, reward_bound=1e6), 60))
    for offset in (-1.2, 0.7):
        clips = 0
        env = sphere(reward_sd=0.5, reward_bound=1.0, reward_offset=offset)
        for (x, _, _, raw, before), (same, _, seen, reward, info) in zip(wide, played(env, 60), strict=True):
            np.testing.assert_array_equal(same, x)
            np.testing.assert_array_equal(info["regret"], before["regret"])
            np.testing.assert_allclose(reward, np.clip(raw + offset, -1, 1), atol=1e-12)
            np.testing.assert_array_equal(seen["last_reward"][..., 0], reward)
            np.testing.assert_array_equal(info["clipped"], np.abs(raw + offset) > 1)
            clips += int(info["clipped"].sum())
        assert 0 < clips < 360


def test_rewards_of_the_registered_environments():
    """N(mean - 1/2, 1/4) clipped at 1.5, of which about 1.2 % are when the mean is large; printed: N(mean, 1/4)."""
    for name, centre, bound in (("FedLinearSphere-v0", 0.5, 1.5), ("FedLinearSpherePrinted-v0", 0.0, 5.0)):
        env = make_federation(name, max_cycles=60)
        assert env.single_observation_space["contexts"].shape == (100, 10)
        assert env.max_num_agents == 100
        found, clips = [], 0
        for contexts, action, _, reward, info in played(env, 60, seeds=[2]):
            v = env.hidden()["parameter"][..., :-1] * sqrt(2)
            taken = np.take_along_axis(features(contexts), action[..., np.newaxis, np.newaxis], axis=2)[
                :, :, 0
            ]
            mean = 0.5 * (taken[..., :-1] * v).sum(axis=-1) + 0.5 - centre
            assert (np.abs(reward) <= bound).all()
            # Where nothing is clipped in practice, the residuals are standard normal.
            found.append(((reward - mean) / 0.5)[np.abs(mean) < 0.05 if centre else np.isfinite(mean)])
            clips += int(info["clipped"].sum())
        residuals = np.concatenate(found)
        # At a mean of at most .05 a clip is at least 2.9 standard deviations away: compared inside of it.
        inside = residuals[np.abs(residuals) < 2.9]
        assert stats.kstest(inside, stats.truncnorm(-2.9, 2.9).cdf).pvalue > LEVEL
        assert (0 < clips < 100) if centre else clips == 0


def test_random_numbers_are_common_to_all_arms_and_numbers_of_agents():
    one = list(played(sphere(reward_sd=0.3), 20, arms_seed=1))
    two = list(played(sphere(reward_sd=0.3, num_agents=5), 20, seeds=(1, 9), arms_seed=2))
    for (x, _, _, _, _), (same, _, _, _, _) in zip(one, two, strict=True):
        np.testing.assert_array_equal(x[1], same[0, :3])
    fixed = []
    for arm in (0, 8):
        env = sphere(reward_sd=0.3, reward_bound=1e6)
        contexts = env.reset_batch([3]).observation["contexts"].copy()
        mean = contexts[:, :, arm] @ env.hidden()["parameter"][0, 0]
        fixed.append(env.step_batch(np.full((1, 3), arm)).reward - mean)
    np.testing.assert_allclose(*fixed, atol=1e-12)


def test_moments_are_outer_products_without_the_squares_of_rewards():
    pairs = zip(played(sphere(), 30), played(sphere(statistic="moments"), 30), strict=True)
    for outer, moments in pairs:
        for name, array in outer[2].items():
            if name == "total_statistic":
                assert (array[..., -1, -1] > 0).all()
                array[..., -1, -1] = 0.0
            np.testing.assert_array_equal(moments[2][name], array)
        np.testing.assert_array_equal(moments[3], outer[3])


def test_releases_of_moments_add_up():
    env = sphere(statistic="moments")
    total = np.zeros((2, 3, 5, 5))
    everyone = np.ones((2, 3), np.bool_)
    for _, _, seen, _, _ in played(env, 5):
        total += env.release(everyone)["statistic"]
        assert (total[..., -1, -1] == 0).all()
        np.testing.assert_allclose(total, seen["total_statistic"], atol=1e-12)


def worst(w_square):
    """The largest norms for replaced and added events, and the inner product at which the first is reached."""
    replaced = (2 + w_square) / sqrt(2) if w_square <= 2 else 2 * sqrt(w_square)
    return replaced, sqrt(1 + w_square), min(w_square / 2, 1.0)


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


@pytest.mark.parametrize(("length", "bound"), BOUNDS)
def test_releases_of_the_environment_attain_the_declared_norms(length, bound):
    """Rewards of enormous variance are clipped to both bounds; the two contexts have the worst inner product."""
    replaced, added, cosine = worst((bound / length) ** 2)
    env = parallel_env(
        num_agents=2,
        contexts=length * np.array([[1.0, 0.0], [cosine, sqrt(max(1 - cosine**2, 0.0))]]),
        parameter=[0.6, -0.8],
        reward="normal",
        reward_sd=1e9,
        reward_bound=bound,
        context_bound=length,
        statistic="moments",
        max_cycles=40,
    )
    env.reset_batch([0])
    told = env.sensitivity()
    scale, pieces = told.scale["statistic"][0, 0], []
    assert told.changes["one-observation"].norm == pytest.approx(replaced, rel=1e-12)
    assert told.changes["one-observation-added"].norm == pytest.approx(added, rel=1e-12)
    for _ in range(40):
        env.step_batch(np.array([[0, 1]]))
        pieces.extend(env.release(np.ones((1, 2), np.bool_))["statistic"][0])
    pieces = np.array(pieces)
    apart = norm(pieces[:, np.newaxis] - pieces, scale).max()
    # At the end of both branches the two contexts are one, up to rounding of 1 - cosine^2.
    assert apart == pytest.approx(replaced, rel=1e-6)
    assert norm(pieces, scale).max() == pytest.approx(added, rel=1e-6)


def epsilon_at(delta, mu):
    """Epsilon of a Gaussian mechanism (Balle and Wang 2018, Theorem 8), by scipy's normal distribution."""

    def spent(epsilon):
        tail = stats.norm.logcdf(-epsilon / mu - mu / 2) + epsilon
        return stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(tail) - delta

    return 0.0 if spent(0.0) <= 0 else optimize.brentq(spent, 0.0, 60.0 + 20 * mu**2, xtol=1e-14)


@pytest.mark.parametrize("adjacency", ["one-observation", "one-observation-added"])
@pytest.mark.parametrize(("length", "bound"), [(1.0, 1.0), (2.0, 3.5)])
def test_the_layout_of_the_noise_gives_the_claimed_privacy(length, bound, adjacency):
    """The best linear test of the worst pair of events, on noise as it is drawn, has mu = norm / multiplier."""
    multiplier, dim = 4.0, 3
    env = parallel_env(num_agents=400, num_arms=2, dim=dim, contexts="unit_ball", reward="normal",
                       context_bound=length, reward_bound=bound, statistic="moments", max_cycles=2)  # fmt: skip
    private = ContinualPrivatizer(env, None, 0.1, noise_multiplier=multiplier, mechanism="independent", releases=1,
                                  adjacency=adjacency)  # fmt: skip
    seeds = range(50)
    private.reset_batch(seeds)
    seen = private.step_batch(np.zeros((50, 400), np.int64)).observation["total_statistic"].copy()
    noise = private.release(np.ones((50, 400), np.bool_))["statistic"] - seen
    np.testing.assert_array_equal(noise, noise.swapaxes(-1, -2))
    assert (noise[..., -1, -1] == 0).all()
    samples = 50 * 400
    sd = multiplier * length**2 * np.where(np.eye(dim + 1), 1.0, sqrt(0.5))
    sd[-1, :-1] = sd[:-1, -1] = multiplier * length**2
    upper = np.triu_indices(dim + 1)
    upper = tuple(index[:-1] for index in upper)
    drawn = noise[..., *upper].reshape(samples, -1)
    # Of the sds each has the standard error 1 / sqrt(2 n), of the correlations 1 / sqrt(n).
    np.testing.assert_allclose(drawn.std(axis=0), sd[upper], rtol=6 / sqrt(2 * samples))
    assert np.abs(np.corrcoef(drawn.T) - np.eye(drawn.shape[1])).max() < 6 / sqrt(samples)
    replaced, added, cosine = worst((bound / length) ** 2)
    x = length * np.array([1.0, 0.0, 0.0])
    y = length * np.array([cosine, sqrt(1 - cosine**2), 0.0])
    change, largest = event(x, bound) - event(y, -bound), replaced
    if adjacency == "one-observation-added":
        change, largest = event(x, bound), added
    # The likelihood ratio of a shift by ``change`` is linear, with weights change / variance.
    weights = change[upper] / sd[upper] ** 2
    mu = change[upper] @ weights / (drawn @ weights).std()
    assert mu == pytest.approx(largest / multiplier, rel=6 / sqrt(2 * samples))
    claim = private.privacy()
    assert claim.adjacency == adjacency
    assert claim.epsilon == pytest.approx(epsilon_at(0.1, largest / multiplier), rel=1e-6)
    assert claim.epsilon < inf
