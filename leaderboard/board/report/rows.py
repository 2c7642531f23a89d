"""Rows of the leaderboard: results of one suite and edition, scored beside each other and ranked by track."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.board.result import Result, ResultError, TaskResult
from fedbandit_envs.leaderboard.board.scores import (
    Estimate,
    normalised,
    paired_difference,
    probability_of_improvement,
    with_interval,
)
from fedbandit_envs.leaderboard.board.suites import SUITES
from fedbandit_envs.leaderboard.board.tracks import Track, tracks_of
from fedbandit_envs.leaderboard.reproduction.private_federation import (
    PLACEBO,
    PROBLEMS,
    SILENT,
    TRUE,
    TUNED,
    Problem,
)

LINES = (SILENT, TUNED, PLACEBO, TRUE)
"""What private baselines are held against."""

UNKNOWN = Estimate(nan, nan, nan)


def problem_of(suite: str) -> Problem | None:
    """Returns what a suite's problem calls its baselines; None for an unknown one."""
    return PROBLEMS.get(suite.removesuffix("-quick"))


def lines_of(suite: str) -> Mapping[str, str]:
    """Returns the baselines that are :data:`LINES` in a suite; none for a suite of an unknown problem."""
    problem = problem_of(suite)
    return {line: problem.names[line] for line in LINES} if problem else {}


class Spent(NamedTuple):
    """What is claimed.

    Attributes:
        epsilon: 0 where nothing has left, infinite where nothing is promised, NaN where it is not known.
        claim: What says so; None where nothing had to.
    """

    epsilon: float
    claim: Mapping[str, Any] | None


def spent(task: TaskResult, adjacency: str) -> Spent:
    """Returns the strongest claim on a task under an adjacency, or under any if none speaks of that one."""
    claims = [claim for claim in task.claims if claim["adjacency"] == adjacency] or task.claims
    if not claims:
        return Spent(inf if np.any(task.messages) else 0.0, None)
    known = [claim for claim in claims if claim["epsilon"] is not None]
    if not known:
        return Spent(nan, claims[0])
    best = min(known, key=_epsilon)
    return Spent(_epsilon(best), best)


def _epsilon(claim: Mapping[str, Any]) -> float:
    return inf if claim["epsilon"] == "infinity" else float(claim["epsilon"])


@dataclass(frozen=True)
class Row:
    """A result beside the others of its suite and edition.

    Attributes:
        result: The result.
        scores: Normalised score of each run, task by task; empty without the reference's result.
        score: Their interquartile mean; unknown if there are none.
        better: How likely it scores higher than tuned silence; unknown without that, and for itself.
        over: By how much it does; likewise.
        rank: Among all on the track of its suite and edition.
    """

    result: Result
    scores: Array
    score: Estimate = UNKNOWN
    better: Estimate = UNKNOWN
    over: Estimate = UNKNOWN
    rank: int = 0

    @property
    def name(self) -> str:
        """Name of the entry."""
        return self.result.entry.name

    @property
    def track(self) -> Track | None:
        """Its track; None for one that this version does not know."""
        suite = SUITES.get(self.result.suite)
        return tracks_of(suite).get(self.result.track) if suite else None

    @property
    def revealed(self) -> bool:
        """Whether it was shown what agents do not know: no competitor."""
        return self.track is not None and self.track.revealed

    @property
    def spent(self) -> Spent:
        """The weakest claim over tasks; not known where one of them is not."""
        return max(self.spent_by_task, key=lambda one: (isnan(one.epsilon), one.epsilon))

    @property
    def spent_by_task(self) -> list[Spent]:
        """What is claimed, a task each."""
        suite = SUITES.get(self.result.suite)
        return [spent(task, suite.adjacency if suite else "") for task in self.result.tasks]

    @property
    def audits(self) -> list[Mapping[str, Any]]:
        """What attacks showed, on tasks where there was one."""
        return [task.audit for task in self.result.tasks if task.audit is not None]

    def traffic(self, kind: str) -> float:
        """Returns the mean of ``messages`` or ``bytes`` of an agent in an episode."""
        return float(np.mean([np.mean(getattr(task, kind)) for task in self.result.tasks]))

    @property
    def cpu_seconds(self) -> float:
        """CPU time of all tasks."""
        return sum(task.cpu_seconds for task in self.result.tasks)


Group = tuple[str, int, str]
"""Suite, its version and the edition's id: who is in it has met the same luck."""


def group_of(result: Result) -> Group:
    """Returns what a result may be compared within."""
    return result.suite, result.suite_version, result.edition.id


def rows_of(results: Iterable[Result]) -> dict[Group, list[Row]]:
    """Scores and ranks results.

    Returns:
        By group, in the order of :data:`.suites.SUITES`; sorted by track and rank.

    Raises:
        ResultError: Two results of a group did not play the same tasks under the same seeds, or two are of the same
            entry on the same track.
    """
    groups: dict[Group, list[Result]] = {}
    for result in results:
        groups.setdefault(group_of(result), []).append(result)
    order = list(SUITES)

    def place(group: Group) -> tuple[int, Group]:
        return order.index(group[0]) if group[0] in order else len(order), group

    return {group: _ranked(groups[group]) for group in sorted(groups, key=place)}


def _ranked(results: Sequence[Result]) -> list[Row]:
    _check_comparable(results)
    suite = SUITES.get(results[0].suite)
    reference = _find(results, suite.reference if suite else "")
    tuned = _find(results, lines_of(results[0].suite).get(TUNED, ""))
    rows = [_scored(result, reference, tuned) for result in results]
    by_track: dict[str, list[Row]] = {}
    for row in sorted(rows, key=_order):
        by_track.setdefault(row.result.track, []).append(row)
    return [
        replace(row, rank=rank)
        for track in sorted(by_track)
        for rank, row in enumerate(by_track[track], start=1)
    ]


def _order(row: Row) -> tuple[bool, float, str]:
    """Best first; without a score by regret, after those that have one."""
    unknown = isnan(row.score.value)
    return unknown, float(_regret(row.result).mean()) if unknown else -float(row.score.value), row.name


def _check_comparable(results: Sequence[Result]) -> None:
    played = [[(task.task, task.digest, list(task.seeds)) for task in result.tasks] for result in results]
    for result, tasks in zip(results, played, strict=True):
        if tasks != played[0]:
            raise ResultError(
                f"results has {result.entry.name!r} and {results[0].entry.name!r} of {result.suite} in edition "
                f"{result.edition.id}, which have not played the same tasks under the same seeds"
            )
    seen = set()
    for result in results:
        place = (result.entry.name, result.entry.kind, result.track)
        if place in seen:
            raise ResultError(
                f"results has the {place[1]} {place[0]!r} twice on track {place[2]!r} of {result.suite}; "
                "once is allowed"
            )
        seen.add(place)


def _find(results: Sequence[Result], name: str) -> Result | None:
    """Finds a baseline's result: what the rest is compared with did not depend on the track."""
    found = (result for result in results if result.entry.name == name and result.entry.kind == "baseline")
    return min(found, key=lambda result: result.track, default=None)


def tasks_of(result: Result) -> Array:
    """Returns the number of the task of each run."""
    return np.repeat(np.arange(len(result.tasks)), [len(task.seeds) for task in result.tasks])


def _regret(result: Result) -> Array:
    """Returns regret per agent at the horizon, a value a run, task by task."""
    return np.concatenate([task.regret_array[-1] for task in result.tasks])


def _scored(result: Result, reference: Result | None, tuned: Result | None) -> Row:
    if reference is None:
        return Row(result, np.empty(0))
    tasks = tasks_of(result)
    scores = normalised(_regret(result), _regret(reference))
    row = Row(result, scores, with_interval(scores, tasks))
    if tuned is None or result is tuned:
        return row
    silent = normalised(_regret(tuned), _regret(reference))
    return replace(
        row,
        better=probability_of_improvement(scores, silent, tasks),
        over=paired_difference(scores, silent, tasks),
    )
