"""Means, ratios and confidence intervals of results over seeds."""

from collections.abc import Callable, Mapping
from math import nan
from typing import Any, Literal

import numpy as np
from scipy.stats import norm as normal
from scipy.stats import t as student

from fedbandit_envs.basics.arrays import Array

FEWEST = 3
"""Smallest number of seeds for which confidence intervals are given.

With two seeds, Student's interval would be 13 times as wide as with many seeds.
"""


LEVEL = 0.95
"""Nominal coverage of all intervals."""


def mean_and_half_width(values: Array, strata: Array | None = None) -> tuple[Array, Array]:
    """Returns the mean over the last axis and the half width of its 95 % Student-t confidence interval.

    Args:
        values: Values with one entry for each seed on the last axis.
        strata: Stratum (such as a problem instance) of each seed, ``(seeds,)``. Strata count as fixed: differences
            between them do not widen the interval, and degrees of freedom are those of Welch and Satterthwaite. None
            if all seeds are of one stratum.

    Returns:
        Mean and half width, both without the last axis. The half width is NaN for fewer than :data:`FEWEST` seeds, or
        if a stratum has only one seed.
    """
    count = values.shape[-1]
    labels = np.zeros(count) if strata is None else strata
    parts = [values[..., labels == stratum] for stratum in np.unique(labels)]
    mean = values.mean(axis=-1)
    if count < FEWEST or min(part.shape[-1] for part in parts) < 2:
        return mean, np.full_like(mean, np.nan)
    # What each stratum contributes to the variance of the mean.
    shares = [part.shape[-1] / count**2 * part.var(axis=-1, ddof=1) for part in parts]
    variance = np.asarray(sum(shares))
    over_freedom = sum(
        share**2 / (part.shape[-1] - 1) for share, part in zip(shares, parts, strict=True)
    ) / np.where(variance > 0, variance**2, 1.0)
    freedom = 1 / np.where(variance > 0, over_freedom, 1.0)
    return mean, student.ppf(0.5 + LEVEL / 2.0, freedom) * np.sqrt(variance)


def stratum_means(values: Array, strata: Array) -> Array:
    """Returns the mean of the values in each stratum, ``(strata,)``.

    Args:
        values: One value for each seed, ``(seeds,)``.
        strata: Stratum (such as a problem instance) of each seed, same shape.
    """
    return np.array([values[strata == stratum].mean() for stratum in np.unique(strata)])


def ratio_in_other_strata(numerator: Array, denominator: Array, strata: Array) -> tuple[float, float]:
    """Returns a 95 % prediction interval for the ratio of two means in a repetition of the experiment with new strata.

    The repetition has as many strata (such as problem instances), drawn from the same distribution, and as many seeds.
    It is Student's prediction interval for the logarithm of the ratio, by linear approximation. Both the present strata
    and the new ones deviate from their distribution's ratio, so on the logarithmic scale this interval is sqrt(2) times
    as wide as the confidence interval of the ratio.

    Args:
        numerator: One value for each seed, ``(seeds,)``.
        denominator: One value for each seed, played with the same random numbers, same shape.
        strata: Stratum of each seed, same shape; all strata must have equally many seeds.

    Returns:
        Lower and upper end; both are NaN for fewer than :data:`FEWEST` strata.
    """
    above, below = stratum_means(numerator, strata), stratum_means(denominator, strata)
    ratio = above.mean() / below.mean()
    _, half = mean_and_half_width(above / above.mean() - below / below.mean())
    return float(ratio * np.exp(-np.sqrt(2) * half)), float(ratio * np.exp(np.sqrt(2) * half))


Middle = Literal["mean", "median"]
"""Which average over seeds is taken."""

MIDDLES: Mapping[Middle, Callable[..., Any]] = {"mean": np.mean, "median": np.median}


def ratio_with_interval(
    numerator: Array, denominator: Array, strata: Array, resamples: int = 2000, middle: Middle = "mean"
) -> tuple[float, float, float]:
    """Returns the ratio of two means or medians over paired seeds, with a 95 % stratified bootstrap interval.

    Seeds are resampled within each stratum, and the same seeds for numerator and denominator.

    Args:
        numerator: One value for each seed, ``(seeds,)``.
        denominator: One value for each seed, played with the same random numbers, same shape.
        strata: Stratum (such as a problem instance) of each seed, same shape.
        resamples: Number of bootstrap resamples.
        middle: Whether it is the ratio of means or of medians.

    Returns:
        Ratio, lower and upper end; the ends are NaN for fewer than :data:`FEWEST` seeds.
    """
    of = MIDDLES[middle]
    value = float(of(numerator) / of(denominator))
    if numerator.size < FEWEST:
        return value, nan, nan
    picks = resampled(strata, resamples)
    ratios = of(numerator[picks], axis=1) / of(denominator[picks], axis=1)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
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


def bootstrap_coverage(count: int) -> float:
    """Returns the true coverage of 95 % percentile bootstrap intervals for a mean of normally distributed values.

    :func:`ratio_with_interval` gives such intervals.

    The percentile bootstrap divides by the number of values, and uses the normal quantile instead of Student's: with
    few values its intervals cover less than their nominal level.

    Args:
        count: Number of values in the one stratum, at least 2.
    """
    reach = normal.ppf(0.5 + LEVEL / 2.0) * np.sqrt((count - 1) / count)
    return float(1 - 2 * student.sf(reach, count - 1))
