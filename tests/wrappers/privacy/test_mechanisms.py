"""The protocol of mechanisms: what a stranger writes from its text alone spends what is booked."""

import math

import numpy as np
import pytest
from privatizers import everyone, play, small

from fedbandit_envs.wrappers import Channel, GaussianPrivatizer, LaplacePrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import equal_shares, gaussian_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.additive import AdditiveMechanism, Gaussian, Laplace
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer


class Staircase(AdditiveMechanism):
    """The staircase mechanism (Geng and Viswanath 2014, with steps of one half), whose shape depends on epsilon.

    Noise is sign (1 - B) (G + U/2) + sign B (G + (1 + U)/2): of P(G = g) = (1 - b) b^g with b = e^-epsilon, and of
    P(B = 0) = 1/(1 + b). Two densities at a distance of one sensitivity differ by a factor of e^epsilon at most.
    """

    def noise_multiplier(self, share):
        return 1.0

    def unit_variance(self, share):
        b = math.exp(-share)
        step, step_square, upper = b / (1 - b), b * (1 + b) / (1 - b) ** 2, b / (1 + b)
        return step_square + step * (upper + 1 / 2) + (2 * upper + 1 / 3) / 4

    def draw(self, generator, share, out):
        b = math.exp(-share)
        step = generator.geometric(1 - b, out.shape) - 1
        upper = generator.random(out.shape) >= 1 / (1 + b)
        out[...] = (step + (upper + generator.random(out.shape)) / 2) * generator.choice([-1, 1], out.shape)

    def event(self, share, noise_multiplier, changes):
        return Event("staircase", share, share, 0.0, tuple(changes.items()))


def test_a_strangers_mechanism_draws_noise_for_the_share_that_is_booked():
    """Shares decrease: the density that each release's noise has falls by e^share a step of one sensitivity."""
    env = Privatizer(small(max_cycles=1000), Staircase(4.0, None))
    raw = small(max_cycles=1000)
    seeds = range(1000)
    env.reset_batch(seeds)
    raw.reset_batch(seeds)
    booked = []
    for _ in range(3):
        play(env, 1)
        play(raw, 1)
        before = set(env.accountant.events)
        noisy, true = env.release(everyone(env)), raw.release(everyone(raw))
        (event,) = [event for event in env.accountant.events if event not in before]
        booked.append(event.epsilon)
        scale = env.sensitivity().scale["delivered"]
        steps = np.concatenate([np.floor(np.abs(noisy[name] - true[name]) / scale).ravel() for name in true])
        # Geometric: the mean of 24,000 steps has a standard error below 1.3 % of it; bounds are 5 of these.
        fraction = math.exp(-event.epsilon)
        mean, sd = fraction / (1 - fraction), math.sqrt(fraction) / (1 - fraction)
        assert abs(steps.mean() - mean) < 5 * sd / math.sqrt(steps.size)
        # The variance of a squared geometric variable is at most 24 times its squared variance or so.
        noise = np.concatenate([(noisy[name] - true[name]).ravel() for name in true])
        variance = np.concatenate([noisy[f"{name}_noise_variance"].ravel() for name in true])
        assert np.mean(noise**2 / variance) == pytest.approx(1, abs=5 * math.sqrt(24 / noise.size))
    assert booked == sorted(booked, reverse=True)
    assert len(set(booked)) == 3
    # Quantity and outcome change together, so that promises are spent twice.
    assert env.privacy().epsilon == pytest.approx(2 * sum(booked))


def test_other_compositions_do_not_know_a_strangers_mechanism():
    env = Privatizer(small(), Staircase(1.0, 4))
    env.reset_batch([0])
    env.release(everyone(env))
    claim = env.accountant.epsilon(1e-5, composition="exact")
    assert (claim.epsilon, claim.reason) == (
        None,
        "exact composition does not know the mechanism 'staircase': its event gives no privacy loss distribution",
    )


class Told(AdditiveMechanism):
    """Takes down what it is told."""

    def __init__(self, epsilon, releases=None):
        super().__init__(epsilon, releases)
        self.drawn = []

    def noise_multiplier(self, share):
        return 1 / share

    def unit_variance(self, share):
        return 1.0

    def draw(self, generator, share, out):
        self.drawn.append(share)
        out[...] = 0.0

    def event(self, share, noise_multiplier, changes):
        assert noise_multiplier == 1 / share
        return Event("told", share, share, 0.0, tuple(changes.items()))


def test_every_agent_draws_for_its_own_share():
    """Agents that have released more often spend less, in one release."""
    env = Privatizer(small(), Told(1.0))
    env.reset_batch([0])
    env.release([[True, False, False]])
    env.release([[True, True, False]])
    env.release([[True, True, True]])
    told = env.mechanism.drawn
    first, second, third = told[0], told[1], told[3]
    assert told == [first, second, first, third, second, first]
    assert first > second > third
    spent = [[2 * (first + second + third), 2 * (first + second), 2 * first]]
    np.testing.assert_allclose(env.accountant.epsilon_by_agent(), spent)


def test_privatizers_do_not_share_a_mechanism():
    mechanism = Told(1.0)
    first, second = Privatizer(small(), mechanism), Privatizer(small(), mechanism)
    first.reset_batch([0])
    second.reset_batch([0, 1])
    first.release(everyone(first))
    assert len(first.mechanism.drawn) == 3
    assert second.mechanism.drawn == mechanism.drawn == []


@pytest.mark.parametrize("multiplier", [0.5, 3.0, 40.0])
def test_a_noise_multiplier_is_the_noise_and_the_claim(multiplier):
    """Its standard deviation within 5 errors, its mu exactly, and the promise that follows at delta."""
    env = GaussianPrivatizer(small(), noise_multiplier=multiplier, delta=1e-3, releases=2)
    raw = small()
    seeds = range(500)
    env.reset_batch(seeds)
    raw.reset_batch(seeds)
    play(env, 1)
    play(raw, 1)
    noisy, true = env.release(everyone(env)), raw.release(everyone(raw))
    scale = env.sensitivity().scale
    noise = np.concatenate([((noisy[name] - true[name]) / scale[name]).ravel() for name in true])
    assert noise.std() == pytest.approx(multiplier, rel=5 / math.sqrt(2 * noise.size))
    np.testing.assert_allclose(noisy["good_noise_variance"], (multiplier * scale["good"]) ** 2)
    (event,) = env.accountant.events
    assert event.loss == 1 / multiplier
    assert (event.epsilon, event.delta) == (gaussian_epsilon(1e-3, 1 / multiplier), 1e-3)
    exact = env.accountant.epsilon(1e-5, composition="exact", adjacency="one-outcome").epsilon
    assert exact == gaussian_epsilon(1e-5, 1 / multiplier)


def test_a_noise_multiplier_of_zero_is_no_noise():
    env = GaussianPrivatizer(small(), noise_multiplier=0.0)
    env.reset_batch([0])
    for _ in range(5):
        env.release(everyone(env))
    assert env.privacy().epsilon == np.inf
    assert env.mechanism.max_releases is None


def test_noise_is_given_by_epsilon_or_by_its_multiplier():
    for arguments in ({}, {"epsilon": 1.0, "noise_multiplier": 1.0}):
        with pytest.raises(ValueError, match="exactly one of them is required"):
            GaussianPrivatizer(small(), **arguments)
    with pytest.raises(ValueError, match=r"noise_multiplier is -1\.0"):
        GaussianPrivatizer(small(), noise_multiplier=-1.0)
    with pytest.raises(TypeError, match="noise_multiplier is 'much'"):
        GaussianPrivatizer(small(), noise_multiplier="much")
    with pytest.raises(ValueError, match="releases is 0"):
        GaussianPrivatizer(small(), noise_multiplier=1.0, releases=0)


def test_equal_shares_are_a_noise_multiplier():
    given = equal_shares(1.0, 1e-5, 9)
    env = GaussianPrivatizer(small(), **given, pair="good_and_defective")
    env.reset_batch([0])
    for _ in range(9):
        env.release(everyone(env))
    assert 1 - 1e-6 <= env.accountant.epsilon(1e-5, composition="exact").epsilon <= 1
    assert Gaussian(**given).noise_multiplier(0.1) == given["noise_multiplier"]


@pytest.mark.parametrize(
    ("mechanism", "privatizer"), [(Laplace(0.9), LaplacePrivatizer), (Gaussian(0.9), GaussianPrivatizer)]
)
def test_a_mechanism_makes_the_privatizer_of_its_name(mechanism, privatizer):
    """Through a channel, the same messages as from the short constructor."""
    seen = []
    for private in (Privatizer(small(), mechanism), privatizer(small(), 0.9)):
        env = Channel(private, schedule="every_round")
        env.reset_batch([3])
        seen.append(play(env, 3).observation)
    for name, array in seen[0].items():
        np.testing.assert_array_equal(array, seen[1][name])
