"""Scores of entries and their uncertainty (Agarwal, Schwarzer, Castro, Courville, Bellemare: NeurIPS 2021).

A run is one task played under one seed. An entry's scores on a suite are given as two arrays of equal length: each
run's score, and the index of each run's task. Runs of different entries are in the same order, to compare them under
the same seeds. Confidence intervals are from the percentile bootstrap, stratified by task: seeds are resampled
within each task, and tasks are not resampled.
"""

from collections.abc import Callable
from math import floor, isnan, log10, nan
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.statistics import FEWEST, resampled

LEVEL = 0.95
RESAMPLES = 2000


_NO_WIDTH = 1e-5  # half of an interval's width up to which it is taken for empty


class Estimate(NamedTuple):
    """A statistic, or an array of statistics, with its 95 % interval.

    Attributes:
        value: The statistic.
        low: Lower end of the interval; NaN if it is not known because a task has fewer than
            :data:`.statistics.FEWEST` seeds.
        high: Upper end of the interval; NaN if the lower end is.
    """

    value: Any
    low: Any = nan
    high: Any = nan


def rounded(value: Estimate) -> str:
    """Returns an estimate and its interval as the text ``number [low, high]``; only the number if it has no interval.

    The interval decides the digits: the last one counts units of 1/20 to 1/2 of the interval's half-width. Without an
    interval, or with one that is empty, there are three significant digits, and for numbers below 1 two decimals.
    """
    half, size = (value.high - value.low) / 2, abs(float(value.value))
    if half > max(_NO_WIDTH, 1e-9 * size):
        # The small factor keeps half-widths such as 0.02, which rounding errors may make smaller, on one side.
        decimals = -floor(log10(half * (1 + 1e-6) / 2))
    else:
        decimals = max(2 - floor(log10(size)), 0) if size >= 1 else 2
    # Adding 0.0 turns -0.0 into 0.0.
    ends = [round(float(end), decimals) + 0.0 for end in value if not isnan(end)]
    number, *interval = (f"{end:,.{max(decimals, 0)}f}" for end in ends)
    return f"{number} [{', '.join(interval)}]" if interval else number


def normalised(regret: Array, reference: Array) -> Array:
    """Returns each run's normalised score, 1 - regret / regret of the reference under the same seed.

    No regret has the score 1; as much regret as the reference, a policy that acts at random, has the score 0.

    Args:
        regret: Regret of an entry at the horizon, one value for each run, ``(runs,)``.
        reference: Regret of the reference policy on the same tasks and seeds, same shape.

    Raises:
        ValueError: Shapes differ, or the reference has no regret to compare with.
    """
    if regret.shape != reference.shape:
        raise ValueError(
            f"reference has shape {reference.shape}; that of regret, {regret.shape}, is required"
        )
    if not (reference > 0).all():
        raise ValueError(f"reference has {reference.min()} as its least regret; more than 0 is required")
    return 1 - regret / reference


def interquartile_mean(scores: Array) -> Array:
    """Returns the mean without the lowest and the highest quarter of the values, which are finite, over the last axis.

    It is SciPy's ``trim_mean(scores, 0.25)`` without its checks, which take longer than the mean.
    """
    low, high = (runs := scores.shape[-1]) // 4, runs - runs // 4
    return np.partition(scores, (low, high - 1), axis=-1)[..., low:high].mean(axis=-1)


def with_interval(scores: Array, tasks: Array) -> Estimate:
    """Returns the interquartile mean of the scores of all runs, with its 95 % interval.

    Args:
        scores: Score of each run, ``(runs,)``.
        tasks: Index of each run's task, same shape.
    """
    return _bootstrapped(interquartile_mean, tasks, scores)


def mean_with_interval(values: Array) -> Estimate:
    """Returns the mean over seeds, with its 95 % interval; if all values are positive, so are the ends of the interval.

    Args:
        values: Values with one entry for each seed on the last axis, ``(..., seeds)``.
    """
    by_seed = np.moveaxis(values, -1, 0)
    seeds = np.arange(len(by_seed))
    return _bootstrapped(
        lambda picked: by_seed[picked].mean(axis=picked.ndim - 1), np.zeros(seeds.size), seeds
    )


def paired_difference(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns the difference of two entries' interquartile mean scores, with its 95 % interval.

    The bootstrap resamples seeds in pairs: the same seeds for both entries.

    Args:
        mine: Scores of the one entry's runs, ``(runs,)``.
        other: Scores of the other entry's runs on the same tasks and seeds, same shape; they are subtracted.
        tasks: Index of each run's task, same shape.
    """
    return _bootstrapped(lambda a, b: interquartile_mean(a) - interquartile_mean(b), tasks, mine, other)


def regret_ratio(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns the typical ratio of one entry's regret to another's under the same seeds, with its 95 % interval.

    It is the exponential of the interquartile mean of the logarithms of all runs' ratios, so that a ratio of 2 and one
    of 1/2 average to 1. No regret, or less, has the ratio 0.

    Args:
        mine: Regret of the one entry's runs at the horizon, ``(runs,)``.
        other: Regret of the other entry's runs on the same tasks and seeds, same shape.
        tasks: Index of each run's task, same shape.
    """
    least = np.finfo(np.float64).tiny
    logarithms = np.log(np.maximum(mine, least) / np.maximum(other, least))
    return _bootstrapped(lambda each: np.exp(interquartile_mean(each)), tasks, logarithms)


def probability_of_improvement(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns the probability that a run of one entry scores higher than a run of another entry on the same task.

    It is estimated in each task by the Mann-Whitney statistic over all pairs of a run of the one and a run of the other
    (ties count one half), and averaged over tasks. The bootstrap resamples the same seeds for both entries.

    Args:
        mine: Scores of the one entry's runs, ``(runs,)``.
        other: Scores of the other entry's runs, same shape.
        tasks: Index of each run's task, same shape.
    """
    return _bootstrapped(lambda a, b: _wins(a, b, np.sort(tasks)), tasks, mine, other)


def performance_profile(scores: Array, tasks: Array, thresholds: Array) -> Estimate:
    """Returns for each threshold the fraction of runs with a higher score, with pointwise 95 % intervals.

    Args:
        scores: Score of each run, ``(runs,)``.
        tasks: Index of each run's task, same shape.
        thresholds: Scores to compare with, ``(thresholds,)``; value and ends of the result have this shape.
    """
    return _bootstrapped(lambda a: (a[..., None, :] > thresholds[:, None]).mean(axis=-1), tasks, scores)


def _wins(mine: Array, other: Array, tasks: Array) -> Array:
    """Returns the probability that a run of ``mine`` exceeds one of ``other`` in the same task, averaged over tasks.

    Args:
        mine: Scores, ``(..., runs)``, sorted by task.
        other: Scores to compare with, same shape and order.
        tasks: Index of each run's task, ``(runs,)``, in ascending order.

    Returns:
        The Mann-Whitney statistic over pairs of runs, with ties counted one half, ``(...)``.
    """
    total = np.zeros(mine.shape[:-1])
    labels = np.unique(tasks)
    for task in labels:
        a, b = mine[..., tasks == task], other[..., tasks == task]
        # For each score of ``mine``: the fraction of the other's scores below it, ties counted one half. One seed at a
        # time, since an array of all pairs of seeds in all resamples would need too much memory.
        for column in range(a.shape[-1]):
            value = a[..., column : column + 1]
            total += ((b < value).mean(axis=-1) + (b <= value).mean(axis=-1)) / (2 * a.shape[-1])
    return total / labels.size


def _bootstrapped(statistic: Callable[..., Array], tasks: Array, *runs: Array) -> Estimate:
    """Returns a statistic of runs with its 95 % interval, by a bootstrap that is stratified by task.

    Args:
        statistic: Function of as many arrays as ``runs`` has; it gets them sorted by task, and for resamples with an
            additional first axis. It works on the last axis.
        tasks: Index of each run's task, ``(runs,)``.
        *runs: Arrays of one value for each run, ``(runs,)``.
    """
    order = np.argsort(tasks, kind="stable")
    value = statistic(*(scores[order] for scores in runs))
    if np.unique(tasks, return_counts=True)[1].min() < FEWEST:
        return Estimate(value, np.full_like(value, np.nan), np.full_like(value, np.nan))
    picks = resampled(tasks, RESAMPLES)
    resamples = statistic(*(scores[picks] for scores in runs))
    return Estimate(value, *np.quantile(resamples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0))
