"""Good units among those delivered: Binomial(l, q) by inversion of one uniform draw.

Inversion couples outcomes across quantities: with the same draw, one more unit adds one good or one defective
unit and changes nothing else. So two policies under one seed meet the same luck, and both the good and the
defective count grow monotonically in l.

A draw u is a uniform integer on ``0 .. 2**31 - 1``, and X exceeds x where ``u > ceil(F(x) 2**31) - 1``, F the
binomial distribution function: every probability is exact to 2**-31. For small capacities and fixed qualities
the leading halves of the right-hand sides are tabled, a count of comparisons without a branch; the few draws
whose leading half ties with a cutoff's are inverted in full.
"""

from math import ceil, exp, floor, lgamma, log, log1p, sqrt

import numpy as np

from fedbandit_envs.compiled import kernel
from fedbandit_envs.federation import Array

_LANES = 64

TABLED_CAPACITY = _LANES - 1
"""Largest capacity that is tabled; tables take 128 bytes a replica, producer and quantity."""


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


@kernel
def _fill_table(quality, table):
    for p in range(quality.shape[0]):
        rare_is_good = quality[p] <= 0.5
        rate = quality[p] if rare_is_good else 1.0 - quality[p]
        for units in range(table.shape[1]):
            cutoffs = table[p, units]
            cutoffs[:units] = 32767 if rare_is_good else -1
            cutoffs[units:] = 32767
            if rate == 0.0:
                continue
            rare, mass = _first_of_tail(units, rate)
            odds = rate / (1.0 - rate)
            cumulative = mass
            while rare < units:
                if rare_is_good:
                    cutoffs[rare] = _cutoff(cumulative) >> 16
                else:
                    cutoffs[units - 1 - rare] = _cutoff(1.0 - cumulative) >> 16
                mass *= odds * (units - rare) / (rare + 1.0)
                cumulative += mass
                rare += 1


def outcome_tables(quality: Array, max_capacity: int) -> Array:
    """Tables the leading halves of the cutoffs of every producer and quantity.

    Args:
        quality: Qualities, float64 ``(replicas, producers)``.
        max_capacity: Largest quantity, at most :data:`TABLED_CAPACITY`.

    Returns:
        Ascending cutoffs, int16 ``(replicas, producers, max_capacity + 1, 64)``, padded with one never passed.
    """
    table = np.empty((*quality.shape, max_capacity + 1, _LANES), np.int16)
    _fill_table(quality.reshape(-1), table.reshape(-1, max_capacity + 1, _LANES))
    return table


@kernel(inline="always")
def good_units_tabled(draw, units, quality, table):
    """Inverts one draw with the table of one producer; equals :func:`good_units`.

    Args:
        draw: Uniform integer on ``0 .. 2**31 - 1``.
        units: Number of units, from 0 to the largest tabled.
        quality: Probability that a unit is good.
        table: The producer's tabled cutoffs, int16 ``(quantities, 64)``.
    """
    # Unsigned indices spare Numba's test for negative ones, and 16-bit sums keep one vector lane a cutoff.
    cutoffs = table[np.uint64(units)]
    leading = np.int16(draw >> 16)
    good = np.int16(0)
    for lane in range(_LANES):
        good = np.int16(good + np.int16(leading > cutoffs[lane]))
    if leading == cutoffs[np.uint64(good)]:
        return np.int64(good_units(draw, units, quality))
    return np.int64(good)
