"""A test whether a policy had less regret in rows that were not watched: a row is one agent in one replica.

On a silent track some rows of each replica, drawn at random by a secret number, are played alone before the others, and
the policy must act in them in the same way when it plays all rows. A policy that could find out which rows those are
could play them honestly, and use the observations of all rows in the others. Its regret is then lower in the others.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from scipy.stats import rankdata

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.result import TaskResult

LEVEL = 1e-5
"""Probability that an honest entry is refuted, over all tasks of its suite together."""

# Scores are rounded to multiples of 1 / _STEPS, so that their sums have few values, whose distribution is exact.
_STEPS = 50
# How fast scores rise with the rank. With this number the half of the rows with more regret have nearly equal scores,
# so that a few rows of very large regret cannot hide that all others have little.
_RISE = 5.0


class PooledRowsError(RuntimeError):
    """A policy had less regret in rows that were not watched: it knew the watched rows, and used data of other rows."""


def scores(regret: Array) -> Array:
    """Returns the score of each agent's regret among those of its replica: int64 ``(replicas, agents)``, 0 or more.

    A row with the rank k of n agents, from the least regret up, gets ``50 (1 - exp(-5 (k - 1) / n))``, rounded; equal
    regrets get the mean of their ranks.

    Args:
        regret: Regret of each row, ``(replicas, agents)``.
    """
    ranks = rankdata(regret, axis=1)
    return np.rint(_STEPS * -np.expm1(-_RISE * (ranks - 1) / regret.shape[1])).astype(np.int64)


def chance(regret: Array, watched: Array) -> float:
    """Returns the p-value of the watched rows' scores: how likely a random choice of rows has a sum as large.

    The choice has as many rows of each replica as are watched in it. The probability is exact whatever the regrets are,
    since the watched rows were chosen at random, and all regrets would be the same had others been chosen.

    Args:
        regret: Final regret of each row, ``(replicas, agents)``.
        watched: Whether each row was watched, bool ``(replicas, agents)``.

    Example:
        >>> regret = np.array([[9.0, 1.0, 2.0, 3.0]] * 5)
        >>> round(chance(regret, regret == 9.0) * 4**5, 6)
        1.0
    """
    points = scores(regret)
    total = int(points[watched].sum())
    sums = reduce(np.convolve, map(_sums, points, watched.sum(axis=1).tolist()))
    return float(sums[total:].sum())


def _sums(points: Array, count: int) -> Array:
    """Returns the distribution of the sum of some rows' scores, if the rows are chosen at random.

    Args:
        points: The scores of one replica's rows, ``(agents,)``.
        count: Number of rows that are chosen.

    Returns:
        Probability of each sum from 0 up to the largest.
    """
    # Entry [k, s]: number of ways to choose k rows whose scores have the sum s.
    ways = np.zeros((count + 1, int(np.sort(points)[::-1][:count].sum()) + 1))
    ways[0, 0] = 1.0
    for score in points.tolist():
        for k in range(count, 0, -1):
            ways[k, score:] += ways[k - 1, : max(0, ways.shape[1] - score)]
    distribution: Array = ways[count] / ways[count].sum()
    return distribution


def chances(tasks: Sequence[TaskResult]) -> dict[str, float]:
    """Returns the p-values of an entry's watched rows, by the task's id; ``"all tasks"`` has that of all together.

    Args:
        tasks: Results of the tasks, whose ``replayed_rows`` are the watched rows.
    """
    rows = []
    for task in tasks:
        regret = np.array(task.row_regret)
        watched = np.zeros(regret.shape, np.bool_)
        watched[tuple(np.array(task.replayed_rows).T)] = True
        rows.append((regret, watched))
    return {task.task: chance(*pair) for task, pair in zip(tasks, rows, strict=True)} | {
        "all tasks": chance(*map(np.concatenate, zip(*rows, strict=True)))
    }


def suspicion(tasks: Sequence[TaskResult]) -> str:
    """Returns why an entry is refuted, as text; empty if its watched rows have no more regret than chance explains.

    Each task is tested, and all of them together; :data:`LEVEL` is divided between these tests.

    Args:
        tasks: Results of the tasks.
    """
    found = chances(tasks)
    where = min(found, key=found.__getitem__)
    level = LEVEL / len(found)
    if found[where] >= level:
        return ""
    return (
        f"{where}: rows that were not watched have less regret than watched ones, which happens by chance with "
        f"probability {found[where]:.1g} (at least {level:.1g} is required); what a row does may depend on its own "
        "observations and its seed, on nothing else"
    )
