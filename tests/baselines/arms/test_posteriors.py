"""Draws from posteriors: beta's law, keys that know nothing of each other, and a shortcut that changes nothing.

Laws are tested at 1e-4 each, under fixed seeds: of the 8 tests one in 1,250 would raise a false alarm.
"""

import numpy as np
import pytest
from arms_references import PosteriorLuck, beta
from numba import njit
from scipy import stats

from fedbandit_envs.baselines.arms import rules
from fedbandit_envs.randomness.streams import row_seeds


def _drawn(a, b, rounds, arms, keys=None):
    """Draws of Beta(a, b), one a round and arm; one arm's key in all rows."""
    keys = rules.arm_keys(row_seeds([1], 1), arms)[0] if keys is None else keys
    shape = (rounds, arms)
    trials, successes, out = np.full(shape, a + b - 2), np.full(shape, a - 1), np.empty(shape)
    keys = np.ascontiguousarray(np.broadcast_to(keys, (*shape, 2)))
    rules.draw_posteriors(keys, np.arange(rounds), trials, successes, out)
    return out


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (1.0, 4.0), (2.0, 1.0), (30.0, 70.0), (1.0, 5000.0), (1.5, 2.25), (4e5, 6e5)]
)
def test_beta_numbers_have_their_law(a, b):
    """Kolmogorov-Smirnov, 200,000 draws."""
    assert stats.kstest(_drawn(a, b, 20_000, 10).ravel(), stats.beta(a, b).cdf).pvalue > 1e-4


def test_rounds_and_arms_do_not_know_of_each_other():
    """Correlations of uniform numbers across rounds and across arms, all at once by chi-square."""
    place = stats.beta(3, 2).cdf(_drawn(3.0, 2.0, 20_001, 10)) - 0.5
    pairs = [place[1:].ravel() * place[:-1].ravel(), (place * np.roll(place, 1, axis=1)).ravel()]
    z = [12 * pair.sum() / np.sqrt(pair.size) for pair in pairs]
    assert stats.chi2(2).sf(np.square(z).sum()) > 1e-4


def test_numbers_are_those_of_the_definition():
    """By plain Python with exact logarithms, sines and cosines: the same but for the 24 bits of normal numbers."""
    arms = rules.arm_keys(row_seeds([3], 2), 4)
    luck = [PosteriorLuck(int(seed), k) for seed in row_seeds([3], 2)[0] for k in range(4)]
    trials = np.arange(8.0)
    successes = trials // 3
    for round_ in range(1, 200):
        out = np.empty((2, 4))
        rules.draw_posteriors(arms[0], np.full(2, round_), trials.reshape(2, 4), successes.reshape(2, 4), out)
        expected = [
            beta(s + 1, n - s + 1, own, round_) for n, s, own in zip(trials, successes, luck, strict=True)
        ]
        np.testing.assert_allclose(out.ravel(), expected, rtol=1e-5, atol=1e-7)


def test_more_arms_leave_the_first_as_they_are():
    seeds = row_seeds([5, 6], 3)
    few, many = rules.arm_keys(seeds, 2), rules.arm_keys(seeds, 5)
    np.testing.assert_array_equal(many[:, :, :2], few)
    assert np.unique(many.view(np.uint64)).size == 2 * 3 * 5
    np.testing.assert_array_equal(rules.arm_keys(seeds[1:, 1:2], 5)[0, 0], many[1, 1])


def test_the_shortcut_accepts_nothing_that_the_test_refuses():
    """On a grid of shapes and normal numbers, each with the largest uniform number that the shortcut lets through."""

    @njit
    def attempt(shape, normal, word):
        return rules._first_attempt(shape, normal, word)

    accepted = 0
    for shape in [1, 1.01, 1.1, 1.5, 2, 3, 5, 10, 100, 1e4]:
        d = shape - 1 / 3
        for normal in np.linspace(-6.6, 6.6, 1321):
            low, high = -1, 2**32
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if attempt(shape, normal, np.uint32(middle)) > 0 else (low, middle)
            if low < 0:
                continue
            v = (1 + normal / np.sqrt(9 * d)) ** 3
            accepted += 1
            # A hair of rounding where both are equalities, at 0.
            exact = 0.5 * normal**2 + d * (1 - v + np.log(v))
            assert np.log(((low >> 1) + 0.5) / 2**31) < exact + 1e-8
    assert accepted > 5000
