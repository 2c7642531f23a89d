"""Rows of the leaderboard: the results of one suite and edition, scored against each other and ranked by track."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, PLACEBO, SILENT, TRUE, TUNED
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.board.result import ResultError, ResultFile, TaskResult
from fedbandit_envs.leaderboard.board.scores import (
    Estimate,
    normalised,
    paired_difference,
    probability_of_improvement,
    with_interval,
)
from fedbandit_envs.leaderboard.board.suites import SUITES
from fedbandit_envs.leaderboard.board.tracks import Track, tracks_of

LINES = (SILENT, TUNED, PLACEBO, TRUE)
"""The baselines that private ones are compared with, by the part that they play in every suite."""

UNKNOWN = Estimate(nan, nan, nan)


def named_baselines(suite: str) -> Mapping[str, str]:
    """Returns the names of a suite's baselines by the part that they play; empty for a suite of an unknown problem."""
    return BASELINE_OF.get(suite.removesuffix("-quick"), {})


def lines_of(suite: str) -> Mapping[str, str]:
    """Returns the names of a suite's baselines that play one of :data:`LINES`; empty for an unknown problem."""
    return {part: name for part, name in named_baselines(suite).items() if part in LINES}


class Spent(NamedTuple):
    """The privacy loss that is claimed of a task's releases.

    Attributes:
        epsilon: 0 where nothing was sent, infinite where nothing is promised, NaN where it is unknown.
        claim: The claim that it is read from, as in the result; None where nothing had to be claimed.
    """

    epsilon: float
    claim: Mapping[str, Any] | None


def spent(task: TaskResult, adjacency: str) -> Spent:
    """Returns the strongest claim on a task under an adjacency, or under any adjacency if none is of this one."""
    claims = [claim for claim in task.claims if claim["adjacency"] == adjacency] or task.claims
    if not claims:
        return Spent(inf if np.any(task.messages) else 0.0, None)
    # "infinity" is text that float() reads.
    known = [Spent(float(claim["epsilon"]), claim) for claim in claims if claim["epsilon"] is not None]
    return min(known, key=lambda one: one.epsilon, default=Spent(nan, claims[0]))


@dataclass(frozen=True)
class RankedRow:
    """One entry's result on one track, scored and ranked against the others of its suite and edition.

    Attributes:
        result: The result.
        scores: Normalised score of each run, task by task; empty where the reference has no result.
        score: Interquartile mean of the scores; NaN where there are none.
        better: Probability that a run scores higher than one of tuned silence; NaN without a result of tuned silence,
            and for tuned silence itself.
        over: Difference of interquartile means to tuned silence; NaN likewise.
        rank: Rank on the track, from 1.
    """

    result: ResultFile
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
    def id(self) -> str:
        """Id of the HTML element that has its details."""
        suite, version, edition = group_of(self.result)
        return f"{suite}-{version}-{edition}-{self.result.track}-{self.result.entry.kind}-{self.name}"

    @property
    def limited(self) -> bool:
        """Whether its track limits the number of messages."""
        return self._track is not None and self._track.messages is not None

    @property
    def revealed(self) -> bool:
        """Whether it was shown what agents do not know, and therefore does not compete."""
        return self._track is not None and self._track.revealed

    @property
    def _track(self) -> Track | None:
        suite = SUITES.get(self.result.suite)
        return tracks_of(suite).get(self.result.track) if suite else None

    @property
    def spent(self) -> Spent:
        """The weakest claim over all tasks; unknown where that of one task is unknown."""
        return max(self.spent_by_task, key=lambda one: (isnan(one.epsilon), one.epsilon))

    @property
    def spent_by_task(self) -> list[Spent]:
        """The privacy loss that is claimed, one a task."""
        suite = SUITES.get(self.result.suite)
        return [spent(task, suite.adjacency if suite else "") for task in self.result.tasks]

    @property
    def audits(self) -> list[Mapping[str, Any]]:
        """Outcomes of the attacks on its privatizer, for tasks where there was one."""
        return [task.audit for task in self.result.tasks if task.audit is not None]

    @property
    def cpu_seconds(self) -> float:
        """CPU time of all tasks, in seconds."""
        return sum(task.cpu_seconds for task in self.result.tasks)

    def traffic(self, kind: str) -> float:
        """Returns the mean of ``messages`` or ``bytes`` that an agent sends in an episode."""
        return float(np.mean([np.mean(getattr(task, kind)) for task in self.result.tasks]))


Group = tuple[str, int, str]
"""Suite, its version and the edition's id: results of one group had common random numbers."""


def group_of(result: ResultFile) -> Group:
    """Returns the group within which a result may be compared."""
    return result.suite, result.suite_version, result.edition.id


def suite_label(group: Group, groups: Iterable[Group]) -> str:
    """Returns the name of a group's suite, with version and edition where there are several."""
    suite, version, edition = group
    alone = sum(other[0] == suite for other in groups) == 1
    return suite if alone else f"{suite} {version} ({edition})"


def rows_of(results: Iterable[ResultFile]) -> dict[Group, list[RankedRow]]:
    """Scores and ranks results.

    Returns:
        The rows by group, in the order of :data:`.suites.SUITES`; sorted by track and rank.

    Raises:
        ResultError: Two results of a group are not of the same tasks and seeds, or two are of the same entry on the
            same track.
    """
    groups: dict[Group, list[ResultFile]] = {}
    for result in results:
        groups.setdefault(group_of(result), []).append(result)
    order = list(SUITES)

    def place(group: Group) -> tuple[int, Group]:
        return order.index(group[0]) if group[0] in order else len(order), group

    return {group: _ranked(groups[group]) for group in sorted(groups, key=place)}


def _ranked(results: Sequence[ResultFile]) -> list[RankedRow]:
    _check_comparable(results)
    name = results[0].suite
    reference = _find(results, SUITES[name].reference if name in SUITES else "")
    tuned = _find(results, lines_of(name).get(TUNED, ""))
    by_track: dict[str, list[RankedRow]] = {}
    for row in sorted((_scored(result, reference, tuned) for result in results), key=_order):
        by_track.setdefault(row.result.track, []).append(row)
    return [
        replace(row, rank=rank)
        for track in sorted(by_track)
        for rank, row in enumerate(by_track[track], start=1)
    ]


def _order(row: RankedRow) -> tuple[bool, float, str]:
    """Sorts the best score first; rows without a score come after those with one, by regret."""
    unknown = isnan(row.score.value)
    return unknown, float(_regret(row.result).mean()) if unknown else -float(row.score.value), row.name


def _check_comparable(results: Sequence[ResultFile]) -> None:
    played = [[(task.task, task.digest, list(task.seeds)) for task in result.tasks] for result in results]
    seen = set()
    for result, tasks in zip(results, played, strict=True):
        entry = result.entry
        if tasks != played[0]:
            raise ResultError(
                f"results has {entry.name!r} and {results[0].entry.name!r} of {result.suite} in edition "
                f"{result.edition.id}, which have not played the same tasks under the same seeds"
            )
        if (place := (entry.name, entry.kind, result.track)) in seen:
            raise ResultError(
                f"results has the {entry.kind} {entry.name!r} twice on track {result.track!r} of {result.suite}; "
                "once is allowed"
            )
        seen.add(place)


def _find(results: Sequence[ResultFile], name: str) -> ResultFile | None:
    """Finds the result of a baseline; one of several will do, since its regret did not depend on the track."""
    found = (result for result in results if result.entry.name == name and result.entry.kind == "baseline")
    return min(found, key=lambda result: result.track, default=None)


def tasks_of(result: ResultFile) -> Array:
    """Returns the number of the task of each run, int64 ``(runs,)``."""
    return np.repeat(np.arange(len(result.tasks)), [len(task.seeds) for task in result.tasks])


def _regret(result: ResultFile) -> Array:
    """Returns regret per agent at the horizon, float64 ``(runs,)``, task by task."""
    return np.concatenate([task.regret_array[-1] for task in result.tasks])


def _scored(result: ResultFile, reference: ResultFile | None, tuned: ResultFile | None) -> RankedRow:
    if reference is None:
        return RankedRow(result, np.empty(0))
    tasks = tasks_of(result)
    scores = normalised(_regret(result), _regret(reference))
    row = RankedRow(result, scores, with_interval(scores, tasks))
    if tuned is None or result is tuned:
        return row
    silent = normalised(_regret(tuned), _regret(reference))
    better = probability_of_improvement(scores, silent, tasks)
    return replace(row, better=better, over=paired_difference(scores, silent, tasks))
