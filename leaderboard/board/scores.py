"""Scores of entries and their uncertainty (Agarwal, Schwarzer, Castro, Courville, Bellemare: NeurIPS 2021).

Scores of a suite are two arrays: one value a run, and the number of the task of each run. Runs of two entries are in
the same order, task by task and seed by seed, so that they are compared with common random numbers. Intervals are
those of the percentile bootstrap, stratified by task: seeds are resampled within each task, tasks are not resampled.
"""

from collections.abc import Callable
from math import nan
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import trim_mean

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.runs.statistics import FEWEST, resampled

LEVEL = 0.95
RESAMPLES = 2000


class Estimate(NamedTuple):
    """A statistic, or an array of statistics, with its 95 % interval.

    Attributes:
        value: The statistic.
        low: Lower end of the interval; NaN where it is not known: a task has fewer than
            :data:`.statistics.FEWEST` seeds.
        high: Upper end, likewise.
    """

    value: Any
    low: Any = nan
    high: Any = nan


def normalised(regret: Array, reference: Array) -> Array:
    """Returns normalised scores: 0 for the regret of the reference with common random numbers, 1 for no regret.

    Args:
        regret: Regret at the horizon, one value a run.
        reference: Regret of the reference, same shape, same tasks and seeds.

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
    """Returns the mean of the middle half of the last axis."""
    return trim_mean(scores, 0.25, axis=-1)


def with_interval(scores: Array, tasks: Array) -> Estimate:
    """Returns the interquartile mean of all runs, with its interval.

    Args:
        scores: One value a run, ``(runs,)``.
        tasks: Number of the task of each run, same shape.
    """
    return _bootstrapped(interquartile_mean, tasks, scores)


def mean_with_interval(values: Array) -> Estimate:
    """Returns the mean over seeds, with its interval; where values are positive, so are the ends of the interval.

    Args:
        values: One value a seed on the last axis, ``(..., seeds)``.
    """
    by_seed = np.moveaxis(values, -1, 0)
    seeds = np.arange(len(by_seed))
    return _bootstrapped(
        lambda picked: by_seed[picked].mean(axis=picked.ndim - 1), np.zeros(seeds.size), seeds
    )


def paired_difference(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns the difference of two entries' interquartile means; seeds are resampled in pairs.

    Args:
        mine: Scores, ``(runs,)``.
        other: Scores of the other entry with common random numbers, same shape.
        tasks: Number of the task of each run, same shape.
    """
    return _bootstrapped(lambda a, b: interquartile_mean(a) - interquartile_mean(b), tasks, mine, other)


def probability_of_improvement(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns the probability that a run of an entry scores higher than one of another, averaged over tasks.

    It is the Mann-Whitney statistic over all pairs of seeds, ties counted as one half; seeds are resampled in pairs.

    Args:
        mine: Scores, ``(runs,)``.
        other: Scores of the other entry, same shape.
        tasks: Number of the task of each run, same shape.
    """
    return _bootstrapped(lambda a, b: _wins(a, b, np.sort(tasks)), tasks, mine, other)


def performance_profile(scores: Array, tasks: Array, thresholds: Array) -> Estimate:
    """Returns the part of all runs that scores higher than each threshold, with pointwise intervals.

    Args:
        scores: One value a run, ``(runs,)``.
        tasks: Number of the task of each run, same shape.
        thresholds: Thresholds, ``(thresholds,)``; each part of the result has this shape.
    """
    return _bootstrapped(lambda a: (a[..., None, :] > thresholds[:, None]).mean(axis=-1), tasks, scores)


def _wins(mine: Array, other: Array, tasks: Array) -> Array:
    """Returns the Mann-Whitney statistic on the last axis, averaged over tasks; runs are sorted by task."""
    total = np.zeros(mine.shape[:-1])
    labels = np.unique(tasks)
    for task in labels:
        a, b = mine[..., tasks == task], other[..., tasks == task]
        # For each own score the part of the others below it, ties by half; one seed at a time, to save memory.
        for column in range(a.shape[-1]):
            value = a[..., column : column + 1]
            total += ((b < value).mean(axis=-1) + (b <= value).mean(axis=-1)) / (2 * a.shape[-1])
    return total / labels.size


def _bootstrapped(statistic: Callable[..., Array], tasks: Array, *runs: Array) -> Estimate:
    """Returns a statistic over the last axis with its interval; the statistic gets runs sorted by task."""
    order = np.argsort(tasks, kind="stable")
    value = statistic(*(scores[order] for scores in runs))
    if np.unique(tasks, return_counts=True)[1].min() < FEWEST:
        return Estimate(value, np.full_like(value, np.nan), np.full_like(value, np.nan))
    picks = resampled(tasks, RESAMPLES)
    low, high = np.quantile(
        statistic(*(scores[picks] for scores in runs)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0
    )
    return Estimate(value, low, high)
