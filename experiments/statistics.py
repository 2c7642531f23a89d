"""Means, ratios and confidence intervals of results over seeds. All intervals have a nominal coverage of 95 %."""

from math import nan
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from fedbandit_envs.basics.arrays import Array

FEWEST = 3
"""Smallest number of seeds for which confidence intervals are given.

With two seeds, Student's quantile is 12.7, where it is 2.0 with many.
"""

_LOW, _HIGH = (1 - 0.95) / 2, (1 + 0.95) / 2

Middle = Literal["mean", "median"]
"""Which average over seeds is taken."""


def mean_and_half_width(values: Array) -> tuple[Array, Array]:
    """Returns the mean over the last axis and the half width of its 95 % Student-t confidence interval.

    Args:
        values: Values with one entry for each seed, or problem instance, on the last axis.

    Returns:
        Mean and half width, both without the last axis. The half width is NaN for fewer than :data:`FEWEST` seeds.
    """
    count = values.shape[-1]
    mean = values.mean(axis=-1)
    if count < FEWEST:
        return mean, np.full_like(mean, np.nan)
    return mean, stdtrit(count - 1, _HIGH) * values.std(axis=-1, ddof=1) / np.sqrt(count)


def ratio_with_interval(
    numerator: Array, denominator: Array, resamples: int = 2000, middle: Middle = "mean"
) -> tuple[float, float, float]:
    """Returns the ratio of two means or medians over paired values, with a 95 % bootstrap interval.

    The same positions are drawn for numerator and denominator.

    Args:
        numerator: One value for each seed, or problem instance, ``(seeds,)``.
        denominator: One value for each of the same seeds, played with the same random numbers, same shape.
        resamples: Number of bootstrap resamples.
        middle: Whether it is the ratio of means or of medians.

    Returns:
        Ratio, lower and upper end; the ends are NaN for fewer than :data:`FEWEST` seeds.
    """
    of = np.mean if middle == "mean" else np.median
    value = float(of(numerator) / of(denominator))
    if numerator.size < FEWEST:
        return value, nan, nan
    picks = resampled(np.zeros(numerator.size), resamples)
    ratios = of(numerator[picks], axis=1) / of(denominator[picks], axis=1)
    low, high = np.quantile(ratios, [_LOW, _HIGH])
    return value, float(low), float(high)


def resampled(strata: Array, resamples: int) -> Array:
    """Returns bootstrap resamples of the seeds, drawn with replacement within each stratum.

    The random generator is fixed, so that equal arguments always give equal resamples.

    Args:
        strata: Stratum of each seed, ``(seeds,)``.
        resamples: Number of resamples.

    Returns:
        Indices of the drawn seeds, int64 ``(resamples, seeds)``, ordered by stratum.
    """
    generator = np.random.default_rng(0)
    members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    picks = [own[generator.integers(0, own.size, (resamples, own.size))] for own in members]
    return np.concatenate(picks, axis=1)
