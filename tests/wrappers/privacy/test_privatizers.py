"""Privatizers: what leaves, and how noisy it is."""

import math

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.test import parallel_api_test
from privatizers import VARIANTS, everyone, play, small

from fedbandit_envs.wrappers import (
    GaussianPrivatizer,
    LaplacePrivatizer,
    RandomizedResponsePrivatizer,
)
from fedbandit_envs.wrappers.observation import Reveal
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier


@pytest.mark.parametrize("privatize", VARIANTS)
def test_a_privatized_environment_is_still_a_parallel_env(privatize):
    parallel_api_test(privatize(small(), 0.5), num_cycles=60)


def test_sensitivity_is_the_capacity():
    env = small()
    with pytest.raises(ResetNeeded):
        env.sensitivity()
    observation = env.reset_batch([3, 4]).observation
    scale = Reveal(env).sensitivity().scale
    assert scale.keys() == env.release(everyone(env)).keys()
    for array in scale.values():
        assert array.dtype == np.float64
        assert np.array_equal(array, observation["capacity"])


def test_without_a_privatizer_privacy_is_all_or_nothing():
    env = Reveal(small())
    env.reset_batch([0])
    assert env.privacy().epsilon == 0.0
    assert env.allowed_senders(everyone(env)).all()
    env.release(~everyone(env))
    assert env.privacy().epsilon == 0.0
    env.release(everyone(env))
    assert (env.privacy().epsilon, env.privacy().reason) == (np.inf, "released without noise")
    env.reset_batch([0])
    assert env.privacy().epsilon == 0.0


@pytest.mark.parametrize("privatize", VARIANTS)
def test_infinite_epsilon_is_the_unprivatised_run_bit_for_bit(privatize):
    raw, private = small(), privatize(small(), np.inf)
    raw.reset_batch([0, 7])
    private.reset_batch([0, 7])
    senders = np.array([[True, False, True], [False, True, True]])
    for who in (senders, ~senders, np.ones_like(senders)):
        play(raw)
        play(private)
        expected, got = raw.release(who), private.release(who)
        assert expected.keys() == {name for name in got if "noise" not in name}
        assert not any(array.any() for name, array in got.items() if "noise" in name)
        for name in expected:
            assert got[name].dtype == np.float64
            assert np.array_equal(expected[name], got[name])
    assert (private.privacy().epsilon, private.privacy().reason) == (np.inf, "released without noise")


@pytest.mark.parametrize("privatize", VARIANTS)
def test_noise_depends_on_the_replicas_seed_alone(privatize):
    """A replica alone, in a batch, and with other senders beside it."""

    def run(seeds, senders):
        env = privatize(small(), 0.5)
        env.reset_batch(seeds)
        sent = []
        for who in senders:
            play(env, 2)
            sent.append({name: array.copy() for name, array in env.release(np.array(who)).items()})
        return sent

    batch = run([5, 6], [[[1, 1, 1], [0, 0, 0]], [[0, 1, 0], [1, 0, 1]], [[1, 1, 1], [1, 1, 1]]])
    alone = run([5], [[[1, 1, 1]], [[0, 1, 0]], [[1, 1, 1]]])
    others = run([5], [[[0, 1, 0]], [[1, 1, 1]], [[0, 1, 1]]])
    for one, many in zip(alone, batch, strict=True):
        for name in one:
            assert np.array_equal(one[name][0], many[name][0])
    # Agent 1 sent each time in both.
    for one, other in zip(alone, others, strict=True):
        for name in one:
            assert np.array_equal(one[name][0, 1], other[name][0, 1])
    again = privatize(small(), 0.5)
    for _ in range(2):
        again.reset_batch([5])
        play(again, 2)
        for name, array in again.release(np.ones((1, 3), np.bool_)).items():
            assert np.array_equal(array, alone[0][name])


@pytest.mark.parametrize("privatize", VARIANTS)
def test_the_silent_release_zero_and_keep_their_data(privatize):
    env = privatize(small(), 0.5)
    env.reset_batch([0])
    play(env)
    got = env.release(np.array([[True, False, False]]))
    for name, array in got.items():
        assert (array[0, 0] != 0).any() or "noise" in name
        assert not array[0, 1:].any()
    assert env.accountant.counts.sum(axis=0).tolist() == [[1, 0, 0]]
    assert env.unwrapped.release(everyone(env))["delivered"][0, 1:].all()


def residuals(env, seeds, releases: int, names=("delivered", "good")) -> list[np.ndarray]:
    """Noise of each release in units of capacity, by array name: (releases) x (names, values)."""
    env.reset_batch(seeds)
    raw = small(max_cycles=env.max_cycles)
    raw.reset_batch(seeds)
    capacity = env.sensitivity().scale["delivered"]
    noise = []
    for _ in range(releases):
        play(raw, 1)
        play(env, 1)
        truth, got = raw.release(everyone(raw)), env.release(everyone(env))
        noise.append(np.stack([((got[name] - truth[name]) / capacity).ravel() for name in names]))
    return noise


# The deviation of n = 12,000 draws errs by 1/sqrt(2 n) (Gaussian) or sqrt(5/(4 n)) (Laplace), 0.65 % and
# 1.02 %; bounds of 5 of these have a false-alarm rate of 6e-7 a comparison, and seeds are fixed.
@pytest.mark.parametrize("calibration", ["classic", "analytic"])
def test_gaussian_noise_has_the_papers_deviation_in_each_release(calibration):
    env = GaussianPrivatizer(small(max_cycles=100_000), 1.0, 0.01, calibration)
    for z, noise in enumerate(residuals(env, range(1000), 3), start=1):
        share = 1 / (2 * math.log2(100_000)) + 1 / 2 ** (z + 1)
        multiplier = math.sqrt(2 * math.log(1.25 / 0.01)) / share
        if calibration == "analytic":
            multiplier = analytic_noise_multiplier(share, 0.01)
        assert noise.std(axis=1) == pytest.approx(multiplier, rel=5 * 0.0065)
        assert noise.mean(axis=1) == pytest.approx(0, abs=5 * multiplier / math.sqrt(12_000))
        assert np.corrcoef(noise)[0, 1] == pytest.approx(0, abs=5 / math.sqrt(12_000))


def test_good_and_defective_doubles_the_variance_of_what_was_delivered():
    env = GaussianPrivatizer(small(), 0.5, releases=1, pair="good_and_defective")
    (noise,) = residuals(env, range(1000), 1)
    multiplier = math.sqrt(2 * math.log(125)) / 0.5
    assert noise.std(axis=1) == pytest.approx([multiplier * math.sqrt(2), multiplier], rel=5 * 0.0065)
    assert np.corrcoef(noise)[0, 1] == pytest.approx(math.sqrt(0.5), abs=5 / math.sqrt(12_000))


def test_laplace_noise_has_the_scale_of_sensitivity_over_epsilon():
    (noise,) = residuals(LaplacePrivatizer(small(), 0.8, releases=1), range(1000), 1)
    assert noise.std(axis=1) == pytest.approx(math.sqrt(2) / 0.8, rel=5 * 0.0102)
    # A Laplace variable's absolute value is exponential: mean and deviation agree.
    assert np.abs(noise).mean() == pytest.approx(1 / 0.8, rel=5 / math.sqrt(24_000))


def test_randomised_response_is_unbiased_and_leaves_quantities_exact():
    epsilon = 0.7
    env = RandomizedResponsePrivatizer(small(), epsilon, releases=1)
    ((delivered, noise),) = residuals(env, range(1000), 1)
    assert not delivered.any()
    # The sum of w flipped bits has variance w p (1 - p), whatever they were; scaled by 1/(2 p - 1).
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    units = env.sensitivity().scale["delivered"].ravel()
    scaled = noise * np.sqrt(units) / (math.sqrt(p * (1 - p)) / (2 * p - 1))
    # 12,000 standardised values: mean errs by 0.0091, deviation by at most that; 5 of these, 6e-7.
    assert scaled.mean() == pytest.approx(0, abs=5 * 0.0091)
    assert scaled.std() == pytest.approx(1, abs=5 * 0.0091)
