"""Noise: releases announce its variance, and whoever finds the episode's seed draws it again, but not secret noise."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from channels import buying, small
from gymnasium.error import ResetNeeded
from played import begun
from scipy.stats import chi2

from fedbandit_envs.core.privacy import independent
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.procurement_v0 import parallel_env as procurement
from fedbandit_envs.randomness.streams import Purpose, is_secret, row_seeds, stream
from fedbandit_envs.wrappers import (
    Channel,
    ContinualPrivatizer,
    GaussianPrivatizer,
    LaplacePrivatizer,
    Placebo,
    RandomizedResponsePrivatizer,
    Reveal,
)

REPLICAS, RELEASES = 60, 3


def market(**kwargs):
    return procurement(num_agents=10, num_producers=8, max_cycles=50, **kwargs)


def played(env):
    """Releases of everybody after each round; yields increments and what they are without noise, by name."""
    observation = env.reset_batch(range(REPLICAS)).observation
    everyone = np.ones((REPLICAS, env.max_num_agents), np.bool_)
    names = env.unwrapped.statistics
    before = {name: np.zeros(observation[f"total_{name}"].shape) for name in names}
    for _ in range(RELEASES):
        action = observation["capacity"] if "capacity" in observation else np.zeros(everyone.shape, np.int64)
        observation = env.step_batch(action).observation
        total = {name: observation[f"total_{name}"].astype(float) for name in names}
        yield env.release(everyone), {name: total[name] - before[name] for name in names}
        before = total


def refuse_unlikely(noise, variance):
    """Holds Gaussian noise to its variance in a test that is wrong once in 10,000 times; none where it is 0."""
    assert not noise[variance == 0].any()
    noise, variance = noise[variance > 0], variance[variance > 0]
    if not noise.size:
        return
    assert noise.size > 2000
    below = chi2.cdf((noise**2 / variance).sum(), noise.size)
    assert 0.5e-4 < below < 1 - 0.5e-4


# Of randomised response a release has up to fifty outcomes a producer: nearly Gaussian, and with lighter tails.
GAUSSIAN = partial(GaussianPrivatizer, epsilon_per_release=0.9)
INDEPENDENT = {
    "gaussian": GAUSSIAN,
    "good and defective": partial(GAUSSIAN, pair="good_and_defective"),
    "randomised response": partial(RandomizedResponsePrivatizer, epsilon_per_release=1.0, releases=3),
    "placebo": lambda env: GAUSSIAN(Placebo(env)),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_every_message_announces_the_variance_of_its_own_noise(name):
    env = INDEPENDENT[name](market())
    assert independent(env.single_release_space)
    for released, true in played(env):
        if name == "placebo":
            true = dict.fromkeys(true, 0.0)
        noise = {key: released[key] - true[key] for key in true}
        variance = {key: released[f"{key}_noise_variance"] for key in true}
        for key in true:
            refuse_unlikely(noise[key], variance[key])
        # What both have in common shows in the noise of defective units.
        common = released.get("noise_covariance", 0.0)
        defective = variance["delivered"] + variance["good"] - 2 * common
        refuse_unlikely(noise["delivered"] - noise["good"], defective)


def test_laplace_announces_its_variance():
    """The absolute value of a Laplace variable is exponential: twice it, in scales, is chi-squared of two degrees."""
    for released, true in played(LaplacePrivatizer(market(), epsilon_per_release=0.8)):
        for name, array in true.items():
            scale = np.sqrt(released[f"{name}_noise_variance"] / 2)
            below = chi2.cdf((2 * np.abs(released[name] - array) / scale).sum(), 2 * array.size)
            assert 0.5e-4 < below < 1 - 0.5e-4


EPISODE = 4711
ENTROPY = 2**90 + 12345


def found_seed(policy_seeds) -> int:
    """What a policy can do with the seeds it is given: search the episode's."""
    return next(seed for seed in range(10_000) if np.array_equal(row_seeds([seed], 4), policy_seeds))


def one_release(**kwargs):
    """What one agent hears of the others, the true data, and the standard deviation of the noise."""
    private = GAUSSIAN(small(), delta=1e-3, releases=1, **kwargs)
    env = begun(Channel(private), [EPISODE])
    seen = env.step_batch(buying(env)).observation
    sd = private.mechanism._multipliers[0] * private.sensitivity().scale["delivered"][0]
    return env, seen["inbox_delivered"][0, 0, 1:], seen["total_delivered"][0, 1:], sd[1:]


def test_noise_is_subtracted_by_whoever_searches_the_seed_unless_it_is_secret():
    seed = found_seed(row_seeds([EPISODE], 4))
    assert seed == EPISODE
    # Units come first in what is drawn.
    drawn = np.stack([stream(seed, Purpose.NOISE, agent).standard_normal(6)[:3] for agent in (1, 2, 3)])
    env, heard, true, sd = one_release()
    np.testing.assert_allclose(heard - sd * drawn, true, atol=1e-9)
    assert env.privacy().noise == "repeatable"
    env, heard, true, sd = one_release(noise_seed=ENTROPY)
    assert np.abs((heard - true) / sd - drawn).max() > 0.5
    assert env.privacy().noise == "secret"


MECHANISMS = {
    "gaussian": partial(GaussianPrivatizer, noise_multiplier=2.0),
    "laplace": partial(LaplacePrivatizer, epsilon=0.9, releases=40),
    "response": partial(RandomizedResponsePrivatizer, epsilon=9.0, releases=40),
    "continual": partial(ContinualPrivatizer, epsilon=1.0, delta=0.1),
    "honaker": partial(ContinualPrivatizer, epsilon=1.0, delta=0.1, mechanism="honaker"),
}
SECRET = partial(GAUSSIAN, noise_seed=ENTROPY)


def released(make, seeds, senders, env=None, **kwargs):
    """Values released in each of five rounds, ``(rounds, replicas, agents, values)``."""
    env = begun(make(small(max_cycles=40), **kwargs) if env is None else env, seeds)
    rounds = []
    for who in senders:
        env.step_batch(buying(env, len(seeds)))
        got = env.release(np.broadcast_to(who, (len(seeds), 4)))
        rounds.append(np.concatenate([a.reshape(len(seeds), 4, -1) for a in got.values()], axis=2))
    return np.stack(rounds)


EVERYONE = [np.ones(4, bool)] * 5


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("noise_seed", [None, ENTROPY])
def test_an_agents_noise_is_its_own(name, noise_seed):
    """Who else sends, and in how many replicas, changes nothing of what an agent releases."""
    make = MECHANISMS[name]
    whole = released(make, [3, 8], EVERYONE, noise_seed=noise_seed)
    only = [np.arange(4) == 2] * 5
    np.testing.assert_array_equal(released(make, [8], only, noise_seed=noise_seed)[:, 0, 2], whole[:, 1, 2])


@pytest.mark.parametrize("name", MECHANISMS)
def test_secret_noise_never_comes_twice(name):
    """Neither in two agents, nor in two replicas of one seed, two episodes or two releases; repeatable noise does."""
    make = MECHANISMS[name]
    env = make(small(max_cycles=40), noise_seed=ENTROPY)
    episodes = [released(make, [8, 8], EVERYONE, env) for _ in range(2)]
    assert not np.array_equal(episodes[0][:, 0], episodes[0][:, 1])
    assert not np.array_equal(episodes[0], episodes[1])
    np.testing.assert_array_equal(released(make, [8, 8], EVERYONE, noise_seed=ENTROPY), episodes[0])
    assert not np.array_equal(released(make, [8, 8], EVERYONE, noise_seed=ENTROPY + 1), episodes[0])
    plain = released(make, [8, 8], EVERYONE)
    np.testing.assert_array_equal(plain[:, 0], plain[:, 1])


@pytest.mark.parametrize(
    ("entropy", "secret"),
    [(None, False), (2**63 - 1, False), (2**63, True), ([2**40] * 2, True), ([1, 2], False)],
)
def test_a_seed_that_can_be_searched_is_not_called_secret(entropy, secret):
    assert is_secret(entropy) is secret
    env = begun(GAUSSIAN(small(), noise_seed=entropy))
    assert env.privacy().noise == ("secret" if secret else "repeatable")


def test_bad_entropy_is_named():
    with pytest.raises(ValueError, match=r"noise_seed\[1\] is -2"):
        GAUSSIAN(small(), noise_seed=[1, -2])


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
    "beside its accountant": lambda env: copy.deepcopy([find_layer(env, "noise").accountant, env])[1],
    "by its accountant": lambda env: copy.deepcopy([find_layer(env, "noise").accountant, env][::-1])[0],
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("wrap", [lambda env: env, Channel, lambda env: Reveal(Channel(env))])
def test_a_copy_makes_secret_noise_repeatable_for_good(how, wrap):
    """In mid-episode and in later ones: the copy has the seed, and draws what the original draws."""
    env = begun(wrap(SECRET(small())), [EPISODE])
    env.step_batch(buying(env))
    assert env.privacy().noise == "secret"
    other = COPIES[how](env)
    for episode in (EPISODE, EPISODE + 1):
        for each in (env, other):
            assert each.privacy().noise == "repeatable"
            assert find_layer(each, "noise").accountant.epsilon().noise == "repeatable"
        drawn = [find_layer(each, "noise").release(np.ones((1, 4), np.bool_)) for each in (env, other)]
        np.testing.assert_equal(*drawn)
        for each in (env, other):
            each.reset_batch([episode + 1])


def test_a_copy_before_the_first_episode_and_a_copy_of_a_copy_are_repeatable():
    env = SECRET(small())
    others = [env, copy.deepcopy(env), copy.copy(env)]
    others.append(pickle.loads(pickle.dumps(others[1])))
    for each in others:
        each.reset_batch([EPISODE])
        assert each.privacy().noise == "repeatable"
    assert begun(SECRET(small()), [EPISODE]).privacy().noise == "secret"


@pytest.mark.parametrize("on_exhausted", ["raise", "silence"])
def test_a_privatizer_put_on_in_mid_episode_asks_for_its_reset(on_exhausted):
    env = GAUSSIAN(begun(small(), [EPISODE]), on_exhausted=on_exhausted)
    with pytest.raises(ResetNeeded, match="keeps accounts from its first reset on"):
        env.release(env.allowed_senders(np.ones((1, 4), np.bool_)))
