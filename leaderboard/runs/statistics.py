"""Statistics of results over seeds."""

from collections.abc import Callable, Mapping
from math import nan
from typing import Any, Literal

import numpy as np
from scipy.stats import norm as normal
from scipy.stats import t as student

from fedbandit_envs.basics.arrays import Array

FEWEST = 3
"""The fewest seeds for an interval: with two, Student's is 13 times as wide as with many seeds."""


def mean_and_half_width(
    values: Array, level: float = 0.95, strata: Array | None = None
) -> tuple[Array, Array]:
    """Returns the mean over the last axis and the half width of its Student-t confidence interval.

    Args:
        values: One value a seed on the last axis.
        level: Coverage of the interval.
        strata: Stratum of each seed, which the interval holds fixed: how far strata lie apart does not widen it. None
            for a single one. Degrees of freedom are Welch's and Satterthwaite's.

    Returns:
        Mean and half width without the last axis; the half width is NaN for fewer than :data:`FEWEST` seeds, or a
        single one in a stratum.
    """
    count = values.shape[-1]
    labels = np.zeros(count) if strata is None else strata
    parts = [values[..., labels == stratum] for stratum in np.unique(labels)]
    mean = values.mean(axis=-1)
    if count < FEWEST or min(part.shape[-1] for part in parts) < 2:
        return mean, np.full_like(mean, np.nan)
    # Each stratum's part of the mean's variance.
    shares = [part.shape[-1] / count**2 * part.var(axis=-1, ddof=1) for part in parts]
    variance = np.asarray(sum(shares))
    over_freedom = sum(
        share**2 / (part.shape[-1] - 1) for share, part in zip(shares, parts, strict=True)
    ) / np.where(variance > 0, variance**2, 1.0)
    freedom = 1 / np.where(variance > 0, over_freedom, 1.0)
    return mean, student.ppf(0.5 + level / 2.0, freedom) * np.sqrt(variance)


def stratum_means(values: Array, strata: Array) -> Array:
    """Returns the mean of each stratum, ``(strata,)``.

    Args:
        values: One value a seed, ``(seeds,)``.
        strata: Stratum of each seed, same shape.
    """
    return np.array([values[strata == stratum].mean() for stratum in np.unique(strata)])


def ratio_in_other_strata(
    numerator: Array, denominator: Array, strata: Array, level: float = 0.95
) -> tuple[float, float]:
    """Predicts the ratio of two means over as many other strata, drawn as these were, with as many seeds.

    Student's prediction on the logarithm, by linear approximation: both these strata and the others deviate from the
    ratio of the distribution they are drawn from, so the interval is sqrt(2) times as wide as that of the ratio itself.

    Args:
        numerator: One value a seed, ``(seeds,)``.
        denominator: One value a seed with common random numbers, same shape.
        strata: Stratum of each seed, same shape; equally many seeds each.
        level: Coverage of the interval.

    Returns:
        Lower and upper end; NaN for a single stratum.
    """
    above, below = stratum_means(numerator, strata), stratum_means(denominator, strata)
    ratio = above.mean() / below.mean()
    _, half = mean_and_half_width(above / above.mean() - below / below.mean(), level)
    return float(ratio * np.exp(-np.sqrt(2) * half)), float(ratio * np.exp(np.sqrt(2) * half))


Middle = Literal["mean", "median"]
"""The average over seeds."""

MIDDLES: Mapping[Middle, Callable[..., Any]] = {"mean": np.mean, "median": np.median}


def ratio_with_interval(
    numerator: Array,
    denominator: Array,
    strata: Array,
    level: float = 0.95,
    resamples: int = 2000,
    middle: Middle = "mean",
) -> tuple[float, float, float]:
    """Returns the ratio of two means or medians over paired seeds, with a stratified bootstrap interval.

    Seeds are resampled within each stratum and in pairs: both share common random numbers.

    Args:
        numerator: One value a seed, ``(seeds,)``.
        denominator: One value a seed with common random numbers, same shape.
        strata: Stratum of each seed, same shape.
        level: Coverage of the percentile interval.
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
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return value, float(low), float(high)


def resampled(strata: Array, resamples: int) -> Array:
    """Draws bootstrap resamples of seeds within each stratum, the same ones whenever strata are.

    Args:
        strata: Stratum of each seed, ``(seeds,)``.
        resamples: How many to draw.

    Returns:
        Indices of seeds, ``(resamples, seeds)``, stratum by stratum.
    """
    generator = np.random.default_rng(0)
    return np.concatenate(
        [
            members[generator.integers(0, members.size, (resamples, members.size))]
            for members in (np.flatnonzero(strata == stratum) for stratum in np.unique(strata))
        ],
        axis=1,
    )


def bootstrap_coverage(count: int, level: float = 0.95) -> float:
    """Returns the true coverage of the intervals of :func:`ratio_with_interval` where values are normal.

    The percentile bootstrap divides by the number of values, and uses the normal quantile instead of Student's: with
    few values its intervals cover less than their nominal level.

    Args:
        count: Number of values in the one stratum, at least 2.
        level: Nominal coverage.
    """
    reach = normal.ppf(0.5 + level / 2.0) * np.sqrt((count - 1) / count)
    return float(1 - 2 * student.sf(reach, count - 1))
