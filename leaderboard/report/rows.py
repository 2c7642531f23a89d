"""Rows of the leaderboard: the results of one suite and edition, scored against each other and ranked by track."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import Any, NamedTuple, Self

import numpy as np

from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, PLACEBO, SILENT, TRUE, TRUE_TUNED, TUNED
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard import scores as statistics
from fedbandit_envs.leaderboard.result import Group, ResultError, ResultFile, TaskResult
from fedbandit_envs.leaderboard.scores import Estimate
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import Track, tracks_of
from fedbandit_envs.registry.registration import REGISTRY

UNKNOWN = Estimate(nan)


def lines_of(suite: str) -> Mapping[str, str]:
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


class Spent(NamedTuple):
    """The privacy loss that an entry claims for all its releases on a task.

    Attributes:
        epsilon: The epsilon of the claim; 0 if nothing was sent, infinite without a guarantee, NaN if unknown.
        claim: The claim that epsilon is from, in the form of the result file; None if the result has no claims.
    """

    epsilon: float
    claim: Mapping[str, Any] | None

    @classmethod
    def on(cls, task: TaskResult, adjacency: str) -> Self:
        """Returns the privacy loss on a task: the smallest epsilon among the claims for an adjacency.

        Args:
            task: Result of the task.
            adjacency: Adjacency of the claims; if the task has none for it, all its claims are considered.
        """
        claims = [claim for claim in task.claims if claim["adjacency"] == adjacency] or task.claims
        if not claims:
            return cls(inf if np.any(task.messages) else 0.0, None)
        # An infinite epsilon is the text "infinity" in JSON, which float() also converts.
        known = [cls(float(claim["epsilon"]), claim) for claim in claims if claim["epsilon"] is not None]
        return min(known, key=lambda one: one.epsilon, default=cls(nan, claims[0]))


@dataclass(frozen=True)
class RankedRow:
    """One entry's result on one track, scored and ranked against the others of its suite and edition.

    Attributes:
        result: The result.
        scores: Normalised score of each run (a task under a seed), task by task; empty if there is no result of the
            reference policy.
        score: Interquartile mean of the scores; NaN if there are no scores.
        better: Probability that a run scores higher than a run of tuned silence, the tuned baseline that sends nothing;
            NaN if there is no result of tuned silence, and for tuned silence itself.
        over: Interquartile mean score minus that of tuned silence; NaN in the same cases as ``better``.
        ratio: Typical ratio of the regret to that of tuned silence; NaN if there is no result of tuned silence.
        rank: Rank on the track, from 1; 0 for an open row, which has none.
        label: Name of the entry, followed by the track's name if the entry is on several tracks, and by ``open``.
        is_open: Whether the row was played on a published edition after it was published, so that its author could know
            the seeds.
    """

    result: ResultFile
    scores: Array
    score: Estimate = UNKNOWN
    better: Estimate = UNKNOWN
    over: Estimate = UNKNOWN
    ratio: Estimate = UNKNOWN
    rank: int = 0
    label: str = ""
    is_open: bool = False

    @property
    def name(self) -> str:
        """Name of the entry."""
        return self.result.entry.name

    @property
    def id(self) -> str:
        """Id of the HTML element of the page that shows the row's details."""
        suite, version, edition = self.result.group
        return (
            f"{suite}-{version}-{edition}-{self.result.track}-{self.result.entry.kind}-{self.name}"
            + "-open" * self.is_open
        )

    @property
    def track(self) -> Track:
        """The track on which the entry was played; one without limits if the suite or the track is not known here."""
        tracks = tracks_of(SUITES[self.result.suite]) if self.result.suite in SUITES else {}
        return tracks.get(self.result.track, Track(self.result.track, inf, 0.0, ""))

    @property
    def is_placebo(self) -> bool:
        """Whether the entry is a placebo: a baseline whose messages are sent without the data in them."""
        known = self.result.entry.kind == "baseline" and self.name in BASELINES
        return known and "placebo" in BASELINES[self.name].wrappers

    def regret(self, number: int) -> float:
        """Returns the regret per agent at the horizon of a task, the mean over seeds.

        Args:
            number: Index of the task in the suite.
        """
        return float(self.result.tasks[number].regret_array[-1].mean())

    @property
    def unscored(self) -> str:
        """Why the row may have no score: its suite's reference was not run."""
        return (
            f"{SUITES[self.result.suite].reference} was not run"
            if self.result.suite in SUITES
            else "unknown suite"
        )

    @property
    def unpaired(self) -> str:
        """Why the row may not be compared with tuned silence: it is tuned silence, or another entry was not run."""
        tuned = lines_of(self.result.suite).get(TUNED)
        if tuned is None:
            return "the suite has no tuned silence"
        if self.name == tuned and self.scores.size:
            return "itself"
        return f"{tuned} was not run" if self.scores.size else self.unscored

    @property
    def spent(self) -> Spent:
        """The largest privacy loss that is claimed on any task; unknown if it is unknown on one of them."""
        return max(self.spent_by_task, key=lambda one: (isnan(one.epsilon), one.epsilon))

    @property
    def spent_by_task(self) -> list[Spent]:
        """The claimed privacy loss on each task, in the suite's order."""
        suite = SUITES.get(self.result.suite)
        return [Spent.on(task, suite.adjacency if suite else "") for task in self.result.tasks]

    @property
    def cpu_seconds(self) -> float:
        """Total CPU time that playing all tasks took, in seconds."""
        return sum(task.cpu_seconds for task in self.result.tasks)

    def traffic(self, kind: str) -> float:
        """Returns how much an agent sends in an episode, the mean over agents, seeds and tasks.

        Args:
            kind: What is counted: ``messages`` or ``bytes``.
        """
        return float(np.mean([np.mean(getattr(task, kind)) for task in self.result.tasks]))


def suite_label(group: Group, groups: Iterable[Group]) -> str:
    """Returns the name of a group's suite, with version and edition if other groups are of the same suite.

    Args:
        group: Name of the suite, its version, and id of the edition.
        groups: All groups.
    """
    suite, version, edition = group
    alone = sum(other[0] == suite for other in groups) == 1
    return suite if alone else f"{suite} {version} ({edition})"


def rows_of(
    results: Iterable[ResultFile], open_results: Collection[str] = ()
) -> dict[Group, list[RankedRow]]:
    """Scores and ranks results within each group (suite, version and edition).

    Open rows have no rank and come after the ranked rows of their track.

    Args:
        results: The results, in any order.
        open_results: Digests of those results whose rows are open (:func:`.published.is_open`).

    Returns:
        The rows of each group, sorted by track and rank; groups are in the order of :data:`.suites.SUITES`.

    Raises:
        ResultError: Two results of a group differ in their tasks or seeds, or are of the same entry on the same track.
    """
    groups: dict[Group, list[ResultFile]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    order = [*SUITES, *sorted({group[0] for group in groups} - SUITES.keys())]
    return {
        group: _ranked(groups[group], open_results)
        for group in sorted(groups, key=lambda one: (order.index(one[0]), one))
    }


def _ranked(results: Sequence[ResultFile], open_results: Collection[str]) -> list[RankedRow]:
    """Returns the scored and ranked rows of one group (suite, version and edition), sorted by track and rank."""
    are_open = [result.digest in open_results for result in results]
    _check_comparable(results, are_open)
    suite = results[0].suite
    # Open results come last, so that the others are found first.
    ordered = sorted(zip(are_open, results, strict=True), key=lambda pair: (pair[0], pair[1].track))
    reference = _find(ordered, SUITES[suite].reference if suite in SUITES else "")
    tuned = _find(ordered, lines_of(suite).get(TUNED, ""))
    scored = (replace(_scored(result, reference, tuned), is_open=is_open) for is_open, result in ordered)
    rows = sorted(scored, key=_order)
    names = Counter(row.name for row in rows)
    ranks: Counter[str] = Counter()
    for place, row in enumerate(rows):
        track = row.result.track
        ranks[track] += not row.is_open
        about = [track] * (names[row.name] > 1) + ["open"] * row.is_open
        label = f"{row.name} ({', '.join(about)})" if about else row.name
        rows[place] = replace(row, rank=0 if row.is_open else ranks[track], label=label)
    return sorted(rows, key=lambda row: row.result.track)


def _order(row: RankedRow) -> tuple[bool, bool, float, str]:
    """Returns a key that sorts rows by score, best first; rows without a score come after them, by mean regret.

    Open rows come after all others.
    """
    unknown = isnan(row.score.value)
    value = float(row.result.last_regret.mean()) if unknown else -float(row.score.value)
    return row.is_open, unknown, value, row.name


def _check_comparable(results: Sequence[ResultFile], are_open: Sequence[bool]) -> None:
    first, seen = results[0], set()
    played = [(task.task, task.digest, list(task.seeds)) for task in first.tasks]
    for result, is_open in zip(results, are_open, strict=True):
        entry = result.entry
        if [(task.task, task.digest, list(task.seeds)) for task in result.tasks] != played:
            raise ResultError(
                f"results has {entry.name!r} and {first.entry.name!r} of {result.suite} in edition "
                f"{result.edition.id}, which have not played the same tasks under the same seeds"
            )
        if (place := (entry.name, entry.kind, result.track, is_open)) in seen:
            raise ResultError(
                f"results has the {entry.kind} {entry.name!r} twice on track {result.track!r} of {result.suite}; "
                "once is allowed"
            )
        seen.add(place)


def _find(results: Iterable[tuple[bool, ResultFile]], name: str) -> ResultFile | None:
    """Returns the first result of the baseline of a name; None without one.

    If there are several, on different tracks, any of them will do: it is used for baselines whose regret does not
    depend on the track.

    Args:
        results: The results, each with whether it is open.
        name: Name of the baseline.
    """
    kind = "baseline" if name not in BASELINES or BASELINES.package(name) is None else "submission"
    found = (result for _, result in results if (result.entry.name, result.entry.kind) == (name, kind))
    return next(found, None)


def _scored(result: ResultFile, reference: ResultFile | None, tuned: ResultFile | None) -> RankedRow:
    tasks, row = result.run_tasks, RankedRow(result, np.empty(0))
    if tuned is not None:
        row = replace(row, ratio=statistics.regret_ratio(result.last_regret, tuned.last_regret, tasks))
    if reference is None:
        return row
    scores = statistics.normalised(result.last_regret, reference.last_regret)
    row = replace(row, scores=scores, score=statistics.with_interval(scores, tasks))
    if tuned is None or result is tuned:
        return row
    silent = statistics.normalised(tuned.last_regret, reference.last_regret)
    better = statistics.probability_of_improvement(scores, silent, tasks)
    return replace(row, better=better, over=statistics.paired_difference(scores, silent, tasks))
