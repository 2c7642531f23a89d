"""The number of good units among l delivered units, Binomial(l, q), by inversion of one uniform random number.

Inversion couples outcomes across quantities: with the same random number, one more unit adds one good or one defective
unit and changes nothing else. So two policies under one seed share common random numbers, and both the number of good
and the number of defective units never fall as l grows.

A draw u is a uniform integer on ``0 .. 2**31 - 1``. The number X of good units exceeds x if
``u > ceil(F(x) 2**31) - 1``, where F is the binomial distribution function: every probability is exact to 2**-31. The
right-hand side is called the cutoff of x. For small capacities and fixed qualities, the leading 16 bits of the cutoffs
are tabled for a window of x around the mean, as many as fit into one cache line. The number of cutoffs that a draw
exceeds is then counted in two vector instructions without a branch. A few draws fall outside the window, or their
leading bits are equal to those of a cutoff; for these all bits are compared.
"""

from math import ceil, exp, floor, lgamma, log, log1p, prod, sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import LANES, equal, greater, inner_kernel, kernel, ones

_WINDOW = LANES
"""Number of cutoffs in a row of a table."""

ROW_BYTES = 2 * _WINDOW
"""Size of a row of a table: one cache line."""

TABLED_CAPACITY = 63
"""Largest capacity for which tables are used: four standard deviations then fit into half a window, for any quality."""


@kernel(inline="always")
def _cutoff(probability):
    # Sums of probabilities have rounding errors of up to about 1e-13. Without the shift by 1e-3, such an error could
    # change the ceiling where F is 0, 1 or a multiple of 2**-31, and a cutoff could rise with the number of units.
    probability = 0.0 if probability < 0.0 else 1.0 if probability > 1.0 else probability
    return ceil(probability * 2147483648.0 - 1e-3) - 1


@inner_kernel
def _first_of_tail(units, rate):
    """Returns x and P(X = x) for X ~ Binomial(units, rate <= 1/2), where x is so small that P(X < x) < 1e-17.

    Sums of probabilities may start at x, which lies nine standard deviations below the mean (or at 0).
    """
    mean = units * rate
    # Up to a mean of 81 the difference is negative, and from there to 82 less than 1.
    start = np.int64(floor(mean - 9.0 * sqrt(mean))) if mean > 82.0 else 0
    if start == 0:
        return 0, exp(units * log1p(-rate))
    log_mass = (
        lgamma(units + 1.0) - lgamma(start + 1.0) - lgamma(units - start + 1.0)
        + start * log(rate) + (units - start) * log1p(-rate)
    )  # fmt: skip
    return start, exp(log_mass)


@inner_kernel
def good_units(draw, units, quality):
    """Returns the number of good units that belongs to a uniform draw, computed without a table.

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
    # This is max(first, 0) without a branch, which the processor could not predict.
    return np.int32(first & ~(first >> np.int32(31)))


@kernel
def _fill_table(quality, table):
    for p in range(quality.shape[0]):
        rare_is_good = quality[p] <= 0.5
        rate = quality[p] if rare_is_good else 1.0 - quality[p]
        for units in range(table.shape[1]):
            cutoffs, first = table[p, units], _first_of_window(units, quality[p])
            for place in range(_WINDOW):
                cutoffs[place] = 32767 if rare_is_good or place >= units - first else -1
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
    """Returns tables of the leading 16 bits of the cutoffs, for every producer and quantity.

    Args:
        quality: Qualities, float64 ``(replicas, producers)``.
        max_capacity: Largest quantity, at most :data:`TABLED_CAPACITY`.

    Returns:
        Ascending cutoffs, int16 ``(replicas, producers, max_capacity + 1, 32)``, padded with a number that no draw
        exceeds.
    """
    shape = (*quality.shape, max_capacity + 1, _WINDOW)
    room = np.empty(prod(shape) + _WINDOW, np.int16)
    # The table is aligned to cache lines, so that each row lies in a single one.
    start = -room.ctypes.data % ROW_BYTES // 2
    table = room[start : start + prod(shape)].reshape(shape)
    _fill_table(quality.reshape(-1), table.reshape(-1, max_capacity + 1, _WINDOW))
    return table


@kernel(inline="always")
def good_units_tabled(draw, units, quality, window):
    """Returns the number of good units that belongs to a uniform draw, by a table; the same as :func:`good_units`.

    Args:
        draw: Uniform integer on ``0 .. 2**31 - 1``.
        units: Number of units, from 0 to the largest in the table.
        quality: Probability that a unit is good.
        window: Memory address of the table's row for the producer and the number of units. The row itself is not
            passed, since compiled code would count references to it, which takes longer than all the rest.
    """
    leading, first = np.int16(draw >> 16), _first_of_window(units, quality)
    passed = ones(greater(leading, window))
    # There is only one branch, which is hardly ever taken. Branches that depend on the draw in every call would often
    # be mispredicted by the processor.
    outside = ((passed == 0) & (first > 0)) | (passed == _WINDOW)
    if outside | (equal(leading, window) != 0):
        return np.int32(good_units(draw, units, quality))
    return np.int32(first + passed)
