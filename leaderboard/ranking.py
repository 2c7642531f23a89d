"""Ranks the rows of a table: measures of entries, with intervals (Agarwal et al., NeurIPS 2021), by suite and track.

A run is one task played under one seed. Runs of different entries are in the same order, to compare them under the same
seeds. Confidence intervals are from the percentile bootstrap, stratified by task: seeds are resampled within each task,
and tasks are not resampled.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, isnan, log10, nan
from typing import NamedTuple

import numpy as np

from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, PLACEBO, SILENT, TRUE, TRUE_TUNED, TUNED
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.statistics import FEWEST, resampled
from fedbandit_envs.leaderboard.suites import SUITES, Edition
from fedbandit_envs.leaderboard.table import Entry, Line, ResultTable, TableError
from fedbandit_envs.registry.registration import REGISTRY

LEVEL = 0.95
RESAMPLES = 2000

_NO_WIDTH = 1e-5  # half of an interval's width up to which it is taken for empty


class Estimate(NamedTuple):
    """A statistic with its 95 % interval.

    Attributes:
        value: The statistic.
        low: Lower end of the interval; NaN if it is not known because a task has fewer than
            :data:`.statistics.FEWEST` seeds.
        high: Upper end of the interval; NaN if the lower end is.
    """

    value: float = nan
    low: float = nan
    high: float = nan


UNKNOWN = Estimate()


def rounded(value: Estimate) -> str:
    """Returns an estimate and its interval as the text ``number [low, high]``; a dash if it is unknown.

    The interval decides the digits: the last one counts units of 1/20 to 1/2 of the interval's half-width. Without an
    interval, or with one that is empty, there are three significant digits, and for numbers below 1 two decimals.
    """
    if isnan(value.value):
        return "\N{EN DASH}"
    half, size = (value.high - value.low) / 2, abs(value.value)
    if half > max(_NO_WIDTH, 1e-9 * size):
        # The small factor keeps half-widths such as 0.02, which rounding errors may make smaller, on one side.
        decimals = -floor(log10(half * (1 + 1e-6) / 2))
    else:
        decimals = max(2 - floor(log10(size)), 0) if size >= 1 else 2
    # Adding 0.0 turns -0.0 into 0.0.
    ends = [round(float(end), decimals) + 0.0 for end in value if not isnan(end)]
    number, *interval = (f"{end:,.{max(decimals, 0)}f}" for end in ends)
    return f"{number} [{', '.join(interval)}]" if interval else number


def interquartile_mean(scores: Array) -> Array:
    """Returns the mean without the lowest and the highest quarter of the values, which are finite, over the last axis.

    It is SciPy's ``trim_mean(scores, 0.25)`` without its checks, which take longer than the mean.
    """
    low, high = (runs := scores.shape[-1]) // 4, runs - runs // 4
    return np.partition(scores, (low, high - 1), axis=-1)[..., low:high].mean(axis=-1)


def regret_ratio(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns the typical ratio of one entry's regret to another's under the same seeds, with its 95 % interval.

    It is the exponential of the interquartile mean of the logarithms of all runs' ratios, so that a ratio of 2 and one
    of 1/2 average to 1. No regret, or less, has the ratio 0.

    Args:
        mine: Regret of the one entry's runs, ``(runs,)``.
        other: Regret of the other entry's runs on the same tasks and seeds, same shape.
        tasks: Index of each run's task, same shape.
    """
    least = np.finfo(np.float64).tiny
    logarithms = np.log(np.maximum(mine, least) / np.maximum(other, least))
    return bootstrapped(lambda each: np.exp(interquartile_mean(each)), tasks, logarithms)


def bootstrapped(statistic: Callable[..., Array], tasks: Array, *runs: Array) -> Estimate:
    """Returns a statistic of runs with its 95 % interval, by a bootstrap that is stratified by task.

    Args:
        statistic: Function of as many arrays as ``runs`` has; it gets them sorted by task, and for resamples with an
            additional first axis. It works on the last axis.
        tasks: Index of each run's task, ``(runs,)``.
        *runs: Arrays of one value for each run, ``(runs,)``.
    """
    order = np.argsort(tasks, kind="stable")
    value = float(statistic(*(scores[order] for scores in runs)))
    if np.unique(tasks, return_counts=True)[1].min() < FEWEST:
        return Estimate(value)
    picks = resampled(tasks, RESAMPLES)
    resamples = statistic(*(scores[picks] for scores in runs))
    low, high = np.quantile(resamples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return Estimate(value, float(low), float(high))


@dataclass(frozen=True)
class Ranked:
    """A row of the leaderboard, ranked against the others of its suite and edition.

    Attributes:
        entry: The entry.
        lines: Its runs, task by task, in the order of the edition's seeds.
        reference: Regret of all runs of the suite's reference, which acts at random, ``(runs,)``; None if it has none.
        tuned: The same of tuned silence.
        rank: Rank on the track, from 1; 0 for an open row, which has none.
    """

    entry: Entry
    lines: list[Line]
    reference: Array | None
    tuned: Array | None
    rank: int = 0

    @property
    def tasks(self) -> list[str]:
        """Ids of the tasks, in the order of the runs."""
        return list(dict.fromkeys(line.task for line in self.lines))

    def values(self, name: str, task: str = "") -> Array:
        """Returns one measure of all runs, or of one task's runs, float64 ``(runs,)``.

        Args:
            name: A numeric field of :class:`~.table.Line`.
            task: Id of the task; empty for all.
        """
        return np.array([getattr(line, name) for line in self.lines if task in ("", line.task)], np.float64)

    @cached_property
    def scores(self) -> Array:
        """For each run 1 - regret / regret of the reference; empty without a reference.

        Raises:
            TableError: The reference has no regret in a run.
        """
        if self.reference is None:
            return np.empty(0)
        if not (self.reference > 0).all():
            raise TableError(
                f"the reference of {self.entry.suite} has no regret in a run; score 0 needs some"
            )
        scores: Array = 1 - self.values("regret") / self.reference
        return scores

    @cached_property
    def score(self) -> Estimate:
        """Interquartile mean of the scores; unknown without them."""
        return bootstrapped(interquartile_mean, self._task, self.scores) if self.scores.size else UNKNOWN

    @cached_property
    def ratio(self) -> Estimate:
        """Typical ratio of the regret to that of tuned silence; unknown if that was not run."""
        return UNKNOWN if self.tuned is None else regret_ratio(self.values("regret"), self.tuned, self._task)

    @property
    def _task(self) -> Array:
        """Index of each run's task."""
        return np.array([self.tasks.index(line.task) for line in self.lines])

    @property
    def epsilon(self) -> float:
        """The largest privacy loss that is claimed on any task; NaN if it is unknown on one of them."""
        return float(np.max(self.values("epsilon")))


def lines_of(suite: str) -> dict[str, str]:
    """Returns the names of the baselines with which private ones of a suite are compared, by their role.

    Roles are agents that send nothing, with default and with tuned constants; a placebo, whose messages carry no data;
    and a federation without noise, with the constants of tuned silence and with its own, if they differ. Empty for
    unknown suites, and for suites of environments that other packages add.
    """
    # "fedbandit_envs.linear.env:LinearEnv" is of the problem "linear", and a problem may have several suites.
    federation = REGISTRY[SUITES[suite].tasks[0].env_id].federation if suite in SUITES else ""
    package, _, inside = federation.partition(".")
    named = BASELINE_OF.get(inside.partition(".")[0], {}) if package == "fedbandit_envs" else {}
    lines = {part: named[part] for part in (SILENT, TUNED, PLACEBO, TRUE, TRUE_TUNED) if named}
    return {part: name for part, name in lines.items() if part == TRUE or name != lines[TRUE]}


def ranked(table: ResultTable) -> dict[Edition, list[Ranked]]:
    """Scores and ranks the finished rows of each suite and edition on each track: by score, or by regret without it.

    Open rows have no rank and come after the ranked rows of their track.

    Returns:
        The rows of each edition, sorted by track and rank; editions are in the order of :data:`.suites.SUITES`.

    Raises:
        TableError: Runs are missing in a row, or are twice in it, or its edition is not in the table.
    """
    groups: dict[Edition, list[tuple[Entry, list[Line]]]] = {}
    for row, lines in sorted(table.lines.items()):
        if row.edition not in table.editions or row not in table.entries:
            raise TableError(f"results have {row}, and no entry or edition of it")
        edition = table.editions[row.edition]
        groups.setdefault(edition, []).append((table.entries[row], in_order(edition, lines)))
    order = [*SUITES, *sorted({edition.suite for edition in groups} - SUITES.keys())]
    return {
        edition: _ranked(groups[edition])
        for edition in sorted(groups, key=lambda one: (order.index(one.suite), one.id))
    }


def in_order(edition: Edition, lines: list[Line]) -> list[Line]:
    """Returns the runs of a row, task by task, in the order in which the edition has its seeds.

    Raises:
        TableError: They are not the runs of the edition: some are missing, twice there, or others.
    """
    suite = SUITES.get(edition.suite)
    if suite is None or suite.digest != edition.digest:
        return sorted(lines, key=lambda line: (line.task, line.seed))
    runs = [(task.id, f"{seed:032x}") for task in suite.tasks for seed in edition.seeds(suite, task)]
    found = {(line.task, line.seed): line for line in lines}
    if len(lines) != len(runs) or found.keys() != {*runs}:
        raise TableError(f"{lines[:1]}: {len(lines)} runs, which are not those of edition {edition.id}")
    return [found[run] for run in runs]


def _ranked(rows: list[tuple[Entry, list[Line]]]) -> list[Ranked]:
    suite = rows[0][0].suite
    reference = _regret_of(rows, SUITES[suite].reference if suite in SUITES else "")
    tuned = _regret_of(rows, lines_of(suite).get(TUNED, ""))
    ordered = sorted((Ranked(*row, reference, tuned) for row in rows), key=_place)
    for place, row in enumerate(ordered):
        before = [one for one in ordered[:place] if one.entry.track == row.entry.track]
        ordered[place] = replace(row, rank=0 if row.entry.is_open else 1 + len(before))
    return sorted(ordered, key=lambda row: row.entry.track)


def _place(row: Ranked) -> tuple[bool, float, str]:
    regret = float(row.values("regret").mean())
    value = -float(interquartile_mean(row.scores)) if row.scores.size else regret
    return row.entry.is_open, value, row.entry.name


def _regret_of(rows: list[tuple[Entry, list[Line]]], name: str) -> Array | None:
    """Returns the regret of all runs of a baseline, which no track changes; None if it was not run."""
    found = sorted((entry.is_open, number) for number, (entry, _) in enumerate(rows) if entry.name == name)
    return np.array([line.regret for line in rows[found[0][1]][1]]) if found else None
