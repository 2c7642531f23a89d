"""Measures of regret over runs, with intervals: means, ratios of means, the worst runs, and failed runs.

Regret is an expectation, so that runs are summed up by their mean. A median drops the runs in which a policy is lost.

The interval is a bootstrap: runs are drawn again with replacement, and quantiles of the statistic are its ends. Which
quantiles, BCa says (bias-corrected and accelerated; Efron, JASA 1987), at the levels of Student's distribution for the
number of runs. It was chosen by a simulation of skewed distributions, ``benchmarks/bench_intervals.py``. Resamples
are the same in every call, so that equal arguments give equal intervals.
"""

from functools import lru_cache
from math import ceil, nan, sqrt

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from fedbandit_envs.basics.arrays import Array

FEWEST = 5
"""Smallest number of runs for which intervals are given.

A resample's mean lies between the smallest and the largest value. For four symmetric values, one sample in eight lies
on one side of the mean.
"""

_TAIL = (1 - 0.95) / 2
_RESAMPLES = 4000

Estimate = tuple[float, float, float]
"""A statistic and the ends of its 95 % interval, which are NaN for fewer than :data:`FEWEST` runs of a task."""


def mean_with_interval(values: Array) -> tuple[Array, Array, Array]:
    """Returns the means over the last axis, and the lower and the upper ends of their 95 % intervals.

    Args:
        values: Values with one entry for each run (seed or problem instance) on the last axis, ``(..., runs)``.

    Returns:
        Mean, lower end and upper end, each ``(...)``. The ends are NaN for fewer than :data:`FEWEST` runs.
    """
    count = values.shape[-1]
    mean = np.asarray(values.mean(axis=-1))
    if count < FEWEST:
        return mean, np.full_like(mean, nan), np.full_like(mean, nan)
    rows = values.reshape(-1, count)
    resampled = _counts(count, 0) @ rows.T / count
    low, high = _interval(mean.ravel(), resampled, (rows - rows.mean(axis=1, keepdims=True)).T, 1)
    return mean, low.reshape(mean.shape), high.reshape(mean.shape)


def ratio_with_interval(above: Array, below: Array, tasks: Array | None = None) -> Estimate:
    """Returns the ratio of expected regrets, with its 95 % interval.

    For several tasks it is the geometric mean over tasks of the ratio of means. Runs are drawn within each task, the
    same ones above and below.

    Args:
        above: Regret of each run, ``(runs,)``.
        below: Regret of another policy under the same seeds, same shape.
        tasks: Number of each run's task, same shape; by default all runs are of one task.
    """
    numbers = np.zeros(above.size) if tasks is None else tasks
    pairs = [(above[numbers == one], below[numbers == one]) for one in np.unique(numbers)]
    ratio, resampled = 1.0, np.ones((_RESAMPLES, 1))
    influence = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for number, (over, under) in enumerate(pairs):
            counts = _counts(over.size, number)
            ratio *= over.mean() / under.mean()
            resampled[:, 0] *= (counts @ over) / (counts @ under)
            influence.append((over / over.mean() - under / under.mean()) / over.size)
        value, resampled = np.array([ratio]) ** (1 / len(pairs)), resampled ** (1 / len(pairs))
    if min(over.size for over, _ in pairs) < FEWEST:
        return float(value[0]), nan, nan
    low, high = _interval(value, resampled, np.concatenate(influence)[:, np.newaxis], len(pairs))
    return float(value[0]), float(low[0]), float(high[0])


def median_ratio(above: Array, below: Array) -> float:
    """Returns the median over runs of the ratio of two policies' regret; arguments as :func:`ratio_with_interval`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.median(above / below))


def worst_tenth(above: Array, below: Array, tasks: Array) -> float:
    """Returns the mean regret of the worst tenth of one policy's runs, divided by the other's mean regret.

    Over tasks it is the geometric mean. Arguments as :func:`ratio_with_interval`.
    """
    ratios = []
    for one in np.unique(tasks):
        own = np.sort(above[tasks == one])
        ratios.append(own[-ceil(own.size / 10) :].mean() / below[tasks == one].mean())
    return float(np.prod(ratios) ** (1 / len(ratios)))


def largest_share(regret: Array, tasks: Array) -> float:
    """Returns the share of a task's summed regret which its largest run holds, on the task where it is largest.

    Args:
        regret: Regret of each run, ``(runs,)``.
        tasks: Number of each run's task, same shape.
    """
    with np.errstate(invalid="ignore"):
        return float(max(np.max(own := regret[tasks == one]) / own.sum() for one in np.unique(tasks)))


def failed(late: Array, below: Array, tasks: Array) -> Array:
    """Returns which runs have failed: regret of their second half exceeds twice the other policy's mean regret.

    Args:
        late: Regret of each run in the second half of its rounds, ``(runs,)``.
        below: Regret of the other policy over all rounds, same shape.
        tasks: Number of each run's task, same shape.
    """
    return np.any(
        [(tasks == one) & (late > 2 * below[tasks == one].mean()) for one in np.unique(tasks)], axis=0
    )


def most_failures(failures: int, runs: int) -> float:
    """Returns the one-sided 95 % upper bound by Clopper and Pearson on the probability that a run fails.

    If runs fail with different probabilities, as on two tasks, it bounds their mean (Hoeffding, 1956).

    Args:
        failures: Number of failed runs.
        runs: Number of runs.

    Example:
        >>> f"{most_failures(0, 100):.3f}"
        '0.030'
    """
    return 1.0 if failures == runs else float(betaincinv(failures + 1, runs - failures, 0.95))


@lru_cache(16)
def _counts(runs: int, number: int) -> Array:
    """Returns how often each run is drawn in each resample, float64 ``(resamples, runs)``."""
    generator = np.random.default_rng([runs, number])
    return generator.multinomial(runs, np.full(runs, 1 / runs), _RESAMPLES).astype(np.float64)


def _interval(value: Array, resampled: Array, influence: Array, tasks: int) -> tuple[Array, Array]:
    """Returns the ends of the intervals of several statistics, each ``(statistics,)``.

    Args:
        value: The statistics, ``(statistics,)``.
        resampled: Their values in resamples, ``(resamples, statistics)``.
        influence: What each run adds to a statistic, up to a factor, ``(runs, statistics)``.
        tasks: Number of tasks within which runs were drawn.
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
        moved = ndtr(shift + quantile / np.maximum(1 - acceleration * quantile, 1e-9))
        place = np.nan_to_num(moved * most)
        left, right = (
            np.take_along_axis(resampled, side(place).astype(np.int64)[np.newaxis], axis=0)[0]
            for side in (np.floor, np.ceil)
        )
        ends.append(left + (right - left) * (place % 1))
    return np.minimum(ends[0], value), np.maximum(ends[1], value)
