"""The number of good units among l delivered ones, Binomial(l, q), by inversion of one uniform draw.

Inversion couples outcomes across quantities: with the same draw, one more unit adds one good or one defective
unit and changes nothing else. So two policies under one seed share common random numbers, and both the good and the
defective count grow monotonically in l.

A draw u is a uniform integer on ``0 .. 2**31 - 1``, and X exceeds x where ``u > ceil(F(x) 2**31) - 1``, F the
binomial distribution function: every probability is exact to 2**-31. For small capacities and fixed qualities
the leading halves of the right-hand sides are tabled for a window of x around the mean, as many as fit into a line of
the cache, and how many of them a draw passes is counted in two vector instructions without a branch. The few draws that
fall outside the window, or whose leading half ties with a cutoff's, are inverted in full.
"""

from math import ceil, exp, floor, lgamma, log, log1p, prod, sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.basics.llvm_intrinsics import LANES, equal, greater, ones

_WINDOW = LANES
"""Number of cutoffs in a row of a table."""

ROW_BYTES = 2 * _WINDOW
"""Size of a row of a table: one cache line."""

TABLED_CAPACITY = 63
"""Largest capacity that is tabled: four standard deviations of any quality fit into half a window."""


@kernel(inline="always")
def _cutoff(probability):
    # Sums carry rounding errors of up to about 1e-13. The shift keeps them from deciding where F is 0, 1 or a
    # multiple of 2**-31, so that cutoffs never rise with the number of units.
    return ceil(min(max(probability, 0.0), 1.0) * 2147483648.0 - 1e-3) - 1


@kernel
def _first_of_tail(units, rate):
    """Returns (x, P(X = x)) where summing P(X = .) upward may start, for X ~ Binomial(units, rate <= 1/2).

    Below x lies less than 1e-17 of the mass (nine standard deviations of the lower tail).
    """
    mean = units * rate
    start = int(max(0.0, floor(mean - 9.0 * sqrt(mean)))) if mean > 40.0 else 0
    if start == 0:
        return 0, exp(units * log1p(-rate))
    log_mass = (
        lgamma(units + 1.0) - lgamma(start + 1.0) - lgamma(units - start + 1.0)
        + start * log(rate) + (units - start) * log1p(-rate)
    )  # fmt: skip
    return start, exp(log_mass)


@kernel
def good_units(draw, units, quality):
    """Inverts one draw without a table.

    Args:
        draw: Uniform integer on ``0 .. 2**31 - 1``.
        units: Number of units, >= 0.
        quality: Probability that a unit is good.

    Returns:
        The number of good units.
    """
    rare_is_good = quality <= 0.5
    rate = quality if rare_is_good else 1.0 - quality
    if units == 0 or rate == 0.0:
        return 0 if rare_is_good else units
    rare, mass = _first_of_tail(units, rate)
    odds = rate / (1.0 - rate)
    cumulative = mass
    while rare < units:
        if rare_is_good:
            if draw <= _cutoff(cumulative):
                break
        elif draw > _cutoff(1.0 - cumulative):
            break
        mass *= odds * (units - rare) / (rare + 1.0)
        cumulative += mass
        rare += 1
    return rare if rare_is_good else units - rare


@kernel(inline="always")
def _first_of_window(units, quality):
    first = np.int32(np.int32(units * quality) - np.int32(_WINDOW // 2 - 1))
    # At least 0, without a branch that could not be predicted.
    return np.int32(first & ~(first >> np.int32(31)))


@kernel
def _fill_table(quality, table):
    for p in range(quality.shape[0]):
        rare_is_good = quality[p] <= 0.5
        rate = quality[p] if rare_is_good else 1.0 - quality[p]
        for units in range(table.shape[1]):
            cutoffs, first = table[p, units], _first_of_window(units, quality[p])
            cutoffs[:] = 32767
            cutoffs[: max(units - first, 0)] = 32767 if rare_is_good else -1
            if rate == 0.0:
                continue
            rare, mass = _first_of_tail(units, rate)
            odds = rate / (1.0 - rate)
            cumulative = mass
            while rare < units:
                place = (rare if rare_is_good else units - 1 - rare) - first
                if 0 <= place < _WINDOW:
                    cutoffs[place] = _cutoff(cumulative if rare_is_good else 1.0 - cumulative) >> 16
                mass *= odds * (units - rare) / (rare + 1.0)
                cumulative += mass
                rare += 1


def outcome_tables(quality: Array, max_capacity: int) -> Array:
    """Tables the leading halves of the cutoffs of every producer and quantity.

    Args:
        quality: Qualities, float64 ``(replicas, producers)``.
        max_capacity: Largest quantity, at most :data:`TABLED_CAPACITY`.

    Returns:
        Ascending cutoffs, int16 ``(replicas, producers, max_capacity + 1, 32)``, padded with one never passed.
    """
    shape = (*quality.shape, max_capacity + 1, _WINDOW)
    room = np.empty(prod(shape) + _WINDOW, np.int16)
    # Aligned to cache lines, so that no row takes two.
    start = -room.ctypes.data % ROW_BYTES // 2
    table = room[start : start + prod(shape)].reshape(shape)
    _fill_table(quality.reshape(-1), table.reshape(-1, max_capacity + 1, _WINDOW))
    return table


@kernel(inline="always")
def good_units_tabled(draw, units, quality, window):
    """Inverts one draw with a table; equals :func:`good_units`.

    Args:
        draw: Uniform integer on ``0 .. 2**31 - 1``.
        units: Number of units, from 0 to the largest tabled.
        quality: Probability that a unit is good.
        window: Address of the table's row for the producer and the number of units. Not the row itself: compiled
            code would count references to it, which takes longer than the rest.
    """
    leading, first = np.int16(draw >> 16), _first_of_window(units, quality)
    passed = ones(greater(leading, window))
    # One branch, hardly ever taken: others would follow the draws, which cannot be predicted.
    outside = ((passed == 0) & (first > 0)) | (passed == _WINDOW)
    if outside | (equal(leading, window) != 0):
        return np.int32(good_units(draw, units, quality))
    return np.int32(first + passed)
