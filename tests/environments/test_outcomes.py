"""Inverted binomial outcomes against scipy, and the tables against direct inversion."""

import numpy as np
import pytest
from numba import njit
from scipy.stats import binom

from fedbandit_envs.procurement.rounds import (
    ROW_BYTES,
    TABLED_CAPACITY,
    good_units,
    good_units_tabled,
    outcome_tables,
)

QUALITIES = [0.0, 1e-9, 0.03, 0.3, 0.5, 0.5000001, 0.77, 0.999, 1.0]


@njit
def invert_all(draws, units, quality):
    good = np.empty(draws.shape[0], np.int64)
    for i in range(draws.shape[0]):
        good[i] = good_units(draws[i], np.int32(units), quality)
    return good


@njit
def invert_all_tabled(draws, units, quality, table):
    good = np.empty(draws.shape[0], np.int64)
    window = table.ctypes.data + units * ROW_BYTES
    for i in range(draws.shape[0]):
        good[i] = good_units_tabled(draws[i], units, quality, window)
    return good


def some_draws(count, seed):
    draws = np.random.default_rng(seed).integers(0, 2**31, count, np.int32)
    draws[:4] = 0, 1, 2**31 - 2, 2**31 - 1
    return draws


@pytest.mark.parametrize("units", [0, 1, 2, 13, 50, TABLED_CAPACITY, 160, 170, 1000, 200_000])
def test_inversion_is_the_binomial_quantile(units):
    draws = some_draws(2000, seed=units)
    for quality in QUALITIES:
        good = invert_all(draws, units, quality)
        assert good.min() >= 0
        assert good.max() <= units
        # X = x exactly where F(x - 1) < (u + 1) / 2**31 <= F(x), up to rounding of F.
        position = (draws + 1.0) / 2**31
        accuracy = 1e-9
        assert (binom.cdf(good - 1, units, quality) <= position + accuracy).all()
        below_top = good < units
        assert (binom.cdf(good, units, quality) >= position - accuracy)[below_top].all()


@pytest.mark.parametrize("quality", QUALITIES[1::2])
def test_tables_equal_direct_inversion(quality):
    table = outcome_tables(np.array([[quality]]), TABLED_CAPACITY)[0, 0]
    for units in range(TABLED_CAPACITY + 1):
        draws = some_draws(3000, seed=units)
        # Draws whose leading half ties with a cutoff's are the delicate ones: put many of them in.
        ties = table[units].astype(np.int64) << 16
        near = (ties[:, np.newaxis] + np.arange(0, 1 << 16, 257)).ravel()
        draws = np.concatenate([draws, near[(near >= 0) & (near < 2**31)].astype(np.int32)])
        np.testing.assert_array_equal(
            invert_all_tabled(draws, units, quality, table), invert_all(draws, units, quality)
        )


def test_one_more_unit_adds_one_good_or_one_defective_unit():
    draws = some_draws(500, seed=1)
    for quality in QUALITIES:
        for units in range(60):
            step = invert_all(draws, units + 1, quality) - invert_all(draws, units, quality)
            assert set(step) <= {0, 1}
