"""Scores of entries and their uncertainty (Agarwal, Schwarzer, Castro, Courville, Bellemare: NeurIPS 2021).

Scores of a suite come as two arrays: one value a run, and which task each run is of. Runs of two entries stand in the
same order, task by task and seed by seed, so that they are compared under the same luck. Intervals are those of the
percentile bootstrap, stratified by task: seeds are resampled within each. They hold tasks fixed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import trim_mean

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.statistics import FEWEST, resampled

LEVEL = 0.95
RESAMPLES = 2000


class Estimate(NamedTuple):
    """A number, or an array of numbers, with its interval.

    Attributes:
        value: What was found.
        low: Lower end; NaN where a task has fewer than :data:`.statistics.FEWEST` seeds.
        high: Upper end, likewise.
    """

    value: Any
    low: Any
    high: Any


def normalised(regret: Array, reference: Array) -> Array:
    """Returns scores: 0 for who regrets as much as the reference under the same luck, 1 for no regret.

    Args:
        regret: Regret at the horizon, one value a run.
        reference: That of the reference, same shape, same tasks and seeds.

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
    """Returns the interquartile mean of all runs.

    Args:
        scores: One value a run, ``(runs,)``.
        tasks: Task of each run, same shape.
    """
    return _bootstrapped(interquartile_mean, tasks, scores)


def mean_with_interval(values: Array) -> Estimate:
    """Returns the mean over seeds; where values are positive, so are the ends of the interval.

    Args:
        values: One value a seed on the last axis, ``(..., seeds)``.
    """
    by_seed = np.moveaxis(values, -1, 0)
    seeds = np.arange(len(by_seed))
    return _bootstrapped(
        lambda picked: by_seed[picked].mean(axis=picked.ndim - 1), np.zeros(seeds.size), seeds
    )


def paired_difference(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns by how much an entry's interquartile mean exceeds another's; seeds are resampled in pairs.

    Args:
        mine: Scores, ``(runs,)``.
        other: Those of the other under the same luck, same shape.
        tasks: Task of each run, same shape.
    """
    return _bootstrapped(lambda a, b: interquartile_mean(a) - interquartile_mean(b), tasks, mine, other)


def probability_of_improvement(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns how likely a run of an entry scores higher than one of another on the same task, averaged over tasks.

    The Mann-Whitney statistic over any two seeds, ties counted as one half; seeds are resampled in pairs.

    Args:
        mine: Scores, ``(runs,)``.
        other: Those of the other, same shape.
        tasks: Task of each run, same shape.
    """
    return _bootstrapped(lambda a, b: _wins(a, b, np.sort(tasks)), tasks, mine, other)


def performance_profile(scores: Array, tasks: Array, thresholds: Array) -> Estimate:
    """Returns which part of all runs scores higher than each threshold, with pointwise intervals.

    Args:
        scores: One value a run, ``(runs,)``.
        tasks: Task of each run, same shape.
        thresholds: Scores to exceed, ``(thresholds,)``, which is the shape of what is returned.
    """
    return _bootstrapped(lambda a: (a[..., None, :] > thresholds[:, None]).mean(axis=-1), tasks, scores)


def _wins(mine: Array, other: Array, tasks: Array) -> Array:
    """Compares all pairs of seeds within each task, which are sorted, on the last axis."""
    total = np.zeros(mine.shape[:-1])
    labels = np.unique(tasks)
    for task in labels:
        a, b = mine[..., tasks == task], other[..., tasks == task]
        # Of each of mine, how many of the others lie below, ties by half; one seed at a time, to stay small.
        for column in range(a.shape[-1]):
            value = a[..., column : column + 1]
            total += ((b < value).mean(axis=-1) + (b <= value).mean(axis=-1)) / (2 * a.shape[-1])
    return total / labels.size


def _bootstrapped(statistic: Callable[..., Array], tasks: Array, *runs: Array) -> Estimate:
    """Returns a statistic over the last axis and its interval; runs are handed to it sorted by task."""
    order = np.argsort(tasks, kind="stable")
    value = statistic(*(scores[order] for scores in runs))
    if np.unique(tasks, return_counts=True)[1].min() < FEWEST:
        return Estimate(value, np.full_like(value, np.nan), np.full_like(value, np.nan))
    picks = resampled(tasks, RESAMPLES)
    low, high = np.quantile(
        statistic(*(scores[picks] for scores in runs)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0
    )
    return Estimate(value, low, high)
