"""Measures of regret over runs, with intervals: means, ratios of means, the worst runs, and failed runs.

Regret is an expectation, so that runs are summed up by their mean. A median drops the runs in which a policy is lost.

The interval is a bootstrap: runs are drawn again with replacement, and quantiles of the statistic are its ends. Which
quantiles, BCa says (bias-corrected and accelerated; Efron, JASA 1987), at the levels of Student's distribution for the
number of runs. It was chosen by a simulation of skewed distributions, ``benchmarks/bench_intervals.py``. Resamples
are the same in every call, so that equal arguments give equal intervals.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, floor, isfinite, isnan, log10, nan, sqrt
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from fedbandit_envs.basics.arrays import Array

FEWEST = 5
"""Smallest number of runs for which intervals are given.

A resample's mean lies between the smallest and the largest value. For four symmetric values, one sample in eight lies
on one side of the mean.
"""

_TAIL = (1 - 0.95) / 2

Estimate = tuple[float, float, float]
"""A statistic and the ends of its 95 % interval, which are NaN for fewer than :data:`FEWEST` runs of a task."""


def mean_with_interval(values: Array) -> tuple[Any, Any, Any]:
    """Returns the means over the last axis, and the lower and the upper ends of their 95 % intervals.

    Args:
        values: Values with one entry for each run (seed or problem instance) on the last axis, ``(..., runs)``.

    Returns:
        Mean, lower end and upper end, each ``(...)``, or floats for values ``(runs,)``. The ends are NaN for fewer than
        :data:`FEWEST` runs.
    """
    count, mean = values.shape[-1], np.asarray(values.mean(axis=-1))
    low, high = np.full((2, *mean.shape), nan)
    if count >= FEWEST:
        resampled = np.tensordot(_counts(count, 0), values, (1, -1)) / count
        low, high = _interval(mean, resampled, np.moveaxis(values - mean[..., np.newaxis], -1, 0), 1)
    return (mean, low, high) if mean.ndim else (float(mean), float(low), float(high))


def ratio_with_interval(above: Array, below: Array, tasks: Array | None = None) -> Estimate:
    """Returns the ratio of expected regrets, with its 95 % interval.

    For several tasks it is the geometric mean over tasks of the ratio of means. Runs are drawn within each task, the
    same ones above and below.

    Args:
        above: Regret of each run, ``(runs,)``.
        below: Regret of another policy under the same seeds, same shape.
        tasks: Number of each run's task, same shape; by default all runs are of one task.
    """
    pairs = _by_task(np.zeros(above.size) if tasks is None else tasks, above, below)
    value, resampled, influence = 1.0, np.ones(()), []
    with np.errstate(divide="ignore", invalid="ignore"):
        for number, (over, under) in enumerate(pairs):
            counts = _counts(over.size, number, above.size)
            value = value * over.mean() / under.mean()
            resampled = resampled * (counts @ over) / (counts @ under)
            influence.append((over / over.mean() - under / under.mean()) / over.size)
        value, resampled = value ** (1 / len(pairs)), resampled ** (1 / len(pairs))
    if min(over.size for over, _ in pairs) < FEWEST:
        return float(value), nan, nan
    low, high = _interval(np.asarray(value), resampled, np.concatenate(influence), len(pairs))
    return float(value), float(low), float(high)


def rounded(value: Sequence[Any]) -> str:
    """Returns an estimate and its interval as the text ``number [low, high]``; a dash if it is unknown or infinite.

    The distance of the nearer end, or a tenth of the interval if that is more, decides the digits: the last one counts
    units of 1/20 to 1/2 of it. Without an interval, or with one of less than 1/1000 of the number, there are three
    significant digits, and for numbers below 1 two decimals.
    """
    centre, low, high = value
    if not isfinite(centre):
        return "\N{EN DASH}"
    near, size = max(min(centre - low, high - centre), (high - low) / 10), abs(centre)
    if high - low > max(1e-5, 1e-3 * size):
        # The small factor keeps distances such as 0.02, which rounding errors may make smaller, on one side.
        decimals = -floor(log10(near * (1 + 1e-6) / 2))
    else:
        decimals = max(2 - floor(log10(size)), 0) if size >= 1 else 2
    # Adding 0.0 turns -0.0 into 0.0.
    ends = [round(float(end), decimals) + 0.0 for end in value if not isnan(end)]
    number, *interval = (f"{end:,.{max(decimals, 0)}f}" for end in ends)
    return f"{number} [{', '.join(interval)}]" if interval else number


def median_ratio(above: Array, below: Array) -> float:
    """Returns the median over runs of the ratio of two policies' regret; arguments as :func:`ratio_with_interval`."""
    return float(np.median(above / below))


def worst_tenth(above: Array, below: Array, tasks: Array) -> float:
    """Returns the mean regret of the worst tenth of one policy's runs, divided by the other's mean regret.

    Over tasks it is the geometric mean. Arguments as :func:`ratio_with_interval`.
    """
    pairs = _by_task(tasks, above, below)
    ratios = [np.sort(over)[-ceil(over.size / 10) :].mean() / under.mean() for over, under in pairs]
    return float(np.prod(ratios) ** (1 / len(ratios)))


def largest_share(regret: Array, tasks: Array) -> float:
    """Returns the share of a task's summed regret which its largest run holds, on the task where it is largest.

    It is 0 if no run has regret.

    Args:
        regret: Regret of each run, ``(runs,)``.
        tasks: Number of each run's task, same shape.
    """
    return float(max(own.max() / (own.sum() or 1) for (own,) in _by_task(tasks, regret)))


def failures(late: Array, below: Array, tasks: Array) -> int:
    """Returns how many runs have failed: regret of their second half exceeds twice the other policy's mean regret.

    Args:
        late: Regret of each run in the second half of its rounds, ``(runs,)``.
        below: Regret of the other policy over all rounds, same shape.
        tasks: Number of each run's task, same shape.
    """
    return sum(int((own > 2 * under.mean()).sum()) for own, under in _by_task(tasks, late, below))


def most_failures(failed: int, runs: int) -> float:
    """Returns the one-sided 95 % upper bound by Clopper and Pearson on the probability that a run fails.

    If runs fail with different probabilities, as on two tasks, it bounds their mean (Hoeffding, 1956).

    Args:
        failed: Number of failed runs.
        runs: Number of runs.

    Example:
        >>> f"{most_failures(0, 100):.3f}"
        '0.030'
    """
    return 1.0 if failed == runs else float(betaincinv(failed + 1, runs - failed, 0.95))


def _by_task(tasks: Array, *runs: Array) -> list[list[Array]]:
    return [[values[tasks == one] for values in runs] for one in np.unique(tasks)]


@lru_cache(8)
def _counts(runs: int, number: int, together: int = 0) -> Array:
    """Returns how often each run is drawn in each resample, float64 ``(resamples, runs)``.

    There are 4,000 resamples, and down to 1,000 where the runs of all tasks together would take too much memory. Tasks
    with equal numbers of runs, but another number of their own, have other resamples.
    """
    resamples = min(4000, max(1000, 4_000_000 // max(runs, together)))
    drawn = np.random.default_rng([runs, number]).multinomial(runs, np.full(runs, 1 / runs), resamples)
    return drawn.astype(np.float64)


def _interval(value: Array, resampled: Array, influence: Array, tasks: int) -> tuple[Array, Array]:
    """Returns the ends of the intervals of statistics ``(...)``, each ``(...)``.

    Runs were drawn within so many tasks. ``resampled`` has the statistics' values in resamples, ``(resamples, ...)``,
    and ``influence`` what each run adds to a statistic, up to a factor, ``(runs, ...)``.
    """
    most = len(resampled) - 1
    resampled = np.sort(resampled, axis=0)
    # Half of the ties count. What differs by rounding errors is a tie, so that the order of a sum is no matter.
    gap, tie = resampled - value, 1e-9 * (resampled[-1] - resampled[0])
    under = ((gap < -tie).mean(axis=0) + (gap <= tie).mean(axis=0)) / 2
    shift = ndtri(np.clip(under, 1 / most, 1 - 1 / most))
    second, third = (influence**2).sum(axis=0), (influence**3).sum(axis=0)
    acceleration = np.divide(third, 6 * second**1.5, out=np.zeros_like(third), where=second > 0)
    # Resamples spread by a factor of sqrt((n - 1) / n) too little, and their spread is an estimate.
    free = len(influence) - tasks
    level = stdtrit(free, _TAIL) * sqrt(len(influence) / free)
    ends = []
    for quantile in (shift + level, shift - level):
        place = np.nan_to_num(most * ndtr(shift + quantile / np.maximum(1 - acceleration * quantile, 1e-9)))
        around = np.stack([np.floor(place), np.ceil(place)]).astype(np.int64)
        left, right = np.take_along_axis(resampled, around, axis=0)
        ends.append(left + (right - left) * (place % 1))
    return np.minimum(ends[0], value), np.maximum(ends[1], value)
