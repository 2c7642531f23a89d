"""The figures of the page: which privacy buys what, curves, fronts, profiles and exposure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, isnan
from typing import NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.board.report.pictures import Axis, Curve, Margins, Picture, alone, curve
from fedbandit_envs.leaderboard.board.report.rows import Row, lines_of, tasks_of
from fedbandit_envs.leaderboard.board.result import TaskResult
from fedbandit_envs.leaderboard.board.scores import Estimate, mean_with_interval, performance_profile
from fedbandit_envs.leaderboard.reproduction.private_federation import SILENT, TUNED

_DRAWN = 6
"""Entries that a crowded figure shows before somebody asks for all."""

_REGRET = "regret per agent (log)"
_DUE, _GOT = "deserved", "pulls"
"""Shares of arms, in what an exposure task adds up to: ``deserved[0]`` is that of the most deserving arm."""


class _Point(NamedTuple):
    row: Row
    regret: float
    low: float
    high: float
    epsilon: float
    bytes: float


def _points(rows: Iterable[Row], number: int) -> list[_Point]:
    """Returns regret with its interval, and cost, of all rows on one task."""
    found = []
    for row in rows:
        task = row.result.tasks[number]
        value, low, high = map(float, mean_with_interval(task.regret_array[-1]))
        epsilon = row.spent_by_task[number].epsilon
        found.append(_Point(row, value, low, high, epsilon, float(np.mean(task.bytes))))
    return found


def _regrets(points: Sequence[_Point]) -> Estimate:
    return Estimate(
        *(np.array([getattr(point, part) for point in points]) for part in ("regret", "low", "high"))
    )


def _label(row: Row, rows: Sequence[Row]) -> str:
    """Names a row: by its track too where its entry is on several."""
    tracks = [other for other in rows if other.name == row.name]
    return f"{row.name} ({row.result.track})" if len(tracks) > 1 else row.name


def _identity(prefix: str, rows: Sequence[Row], task: str = "") -> str:
    result = rows[0].result
    whole = f"{prefix}-{task or result.suite}-{result.suite_version}-{result.edition.id}"
    return "".join(letter if letter.isalnum() else "-" for letter in whole)


def _said(values: Iterable[tuple[str, float]]) -> str:
    return "; ".join(f"{name} {value:.4g}" for name, value in values)


def what_privacy_buys(rows: Sequence[Row], number: int) -> Picture | None:
    """Draws regret against epsilon for every private baseline of a task; None where there is none.

    Args:
        rows: Of one group.
        number: Of the task.
    """
    task = rows[0].result.tasks[number]
    points = _points(rows, number)
    lines = lines_of(rows[0].result.suite)
    private = [
        point for point in points
        if 0 < point.epsilon < inf and "placebo" not in _parts(point.row) and point.row.name not in lines.values()
    ]  # fmt: skip
    if not private:
        return None
    epsilons = sorted({point.epsilon for point in private})
    span = [epsilons[0] / 2, epsilons[-1] * 2]
    levels = {
        line: float(np.mean([point.regret for point in points if point.row.name == name]))
        for line, name in lines.items()
        if any(point.row.name == name for point in points)
    }
    curves = [
        Curve(f"{line}: {lines[line]}", span, [float(f"{level:.4g}")] * 2, form="level")
        for line, level in levels.items()
    ]
    named: dict[str, list[_Point]] = {}
    for point in sorted(private, key=lambda point: point.regret):
        track = point.row.track
        few = " (few messages)" if track and track.messages is not None else ""
        named.setdefault(point.row.name + few, []).append(point)
    for name, found in named.items():
        own = sorted(found, key=lambda point: point.epsilon)
        curves.append(curve(name, (point.epsilon for point in own), _regrets(own)))
    least = {name: found[0].regret for name, found in named.items()}
    return Picture(
        id=_identity("buys", rows, task.task),
        title=task.task,
        caption=f"After {task.rounds[-1]:,} rounds, with 95 % intervals over {len(task.seeds)} seeds.",
        words=f"Levels: {_said(levels.items())}. Least regret of each private baseline: {_said(least.items())}.",
        x=Axis("epsilon claimed (log)", log=True),
        y=Axis(_REGRET, log=True),
        curves=curves,
    )


def _parts(row: Row) -> Iterable[str]:
    """Returns the parts of a baseline's wrappers; none of a submission's."""
    known = row.result.entry.kind == "baseline" and row.name in BASELINES
    return BASELINES[row.name].wrappers if known else ()


def _best_first(rows: Sequence[Row], number: int) -> list[Row]:
    """Sorts rows by their regret; those who are shown what agents do not know come last."""
    return sorted(
        rows,
        key=lambda row: (row.revealed, row.result.tasks[number].regret_array[-1].mean()),
    )


def regret_curves(rows: Sequence[Row], number: int) -> Picture:
    """Draws mean regret over rounds with its band, of all rows of a group on one task."""
    task = rows[0].result.tasks[number]
    best = _best_first(rows, number)
    curves = []
    for place, row in enumerate(best):
        own = row.result.tasks[number]
        keep = _thinned(len(own.rounds))
        regret = mean_with_interval(own.regret_array[keep])
        # Who is shown the truth may regret nothing, which no logarithm shows.
        seen = regret.value > 0
        if seen.any():
            shown = Estimate(*(part[seen] for part in regret))
            rounds = np.asarray(own.rounds)[keep][seen]
            curves.append(curve(_label(row, rows), rounds, shown, "band", _first(row, place)))
    ends_at = ((_label(row, rows), row.result.tasks[number].regret_array[-1].mean()) for row in best)
    return Picture(
        id=_identity("curves", rows, task.task),
        title=f"Regret over rounds, {task.task}",
        caption=f"Cumulative regret per agent, the mean over {len(task.seeds)} seeds in its 95 % band. The best "
        f"{_DRAWN}, silence and submissions are drawn first.",
        words=f"After {task.rounds[-1]:,} rounds, least first: {_said(ends_at)}.",
        x=Axis("round (log)", log=True),
        y=Axis("cumulative regret per agent (log)", log=True),
        curves=curves,
    )


def _first(row: Row, place: int) -> bool:
    """Says whether a crowded figure shows a row before somebody asks for all."""
    lines = lines_of(row.result.suite)
    silence = [lines[line] for line in (SILENT, TUNED) if line in lines]
    return place < _DRAWN or row.name in silence or row.result.entry.kind == "submission"


def _thinned(count: int, most: int = 15) -> Array:
    """Returns at most so many indices, evenly spaced, the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def front(rows: Sequence[Row], number: int, cost: str) -> Picture | None:
    """Draws regret against a cost, and the rows which no other beats in both; None where no cost is known.

    Args:
        rows: Of one group.
        number: Of the task.
        cost: ``epsilon`` or ``bytes``.
    """
    task = rows[0].result.tasks[number]
    entered = [point for point in _points(rows, number) if not point.row.revealed]
    points = [point for point in entered if not isnan(getattr(point, cost))]
    if not points:
        return None
    margins = Margins([getattr(point, cost) for point in points])
    ends = {"epsilon": ("0", "\N{INFINITY}"), "bytes": ("0", "")}[cost]
    unbeaten = sorted(
        (point for point in points if not any(_beats(other, point, cost) for other in points)),
        key=lambda point: (getattr(point, cost), point.regret),
    )
    steps = alone(np.array([point.regret for point in unbeaten]))
    curves = [curve("front", (margins.place(getattr(p, cost)) for p in unbeaten), steps, "front")]
    beaten = [point for point in points if point not in unbeaten]
    for name, found in [(_label(point.row, rows), [point]) for point in unbeaten] + [("beaten", beaten)]:
        if found:
            where = (margins.place(getattr(point, cost)) for point in found)
            drawn = curve(name, where, _regrets(found), "points")
            curves.append(replace(drawn, texts=[_label(point.row, rows) for point in found]))
    names = ", ".join(_label(point.row, rows) for point in unbeaten)
    unit = {"epsilon": "epsilon claimed", "bytes": "bytes an agent sends in an episode"}[cost]
    missing = len(entered) - len(points)
    return Picture(
        id=_identity(f"front-{cost}", rows, task.task),
        title=f"Regret against {cost}, {task.task}",
        caption=f"Every row at its regret and its {unit}. On the front are those that no other beats in both"
        + (f"; {missing} whose {cost} is not known are left out." if missing else "."),
        words=f"On the front, from the least {cost} on: {names}.",
        x=Axis(f"{unit} (log)", log=True, ticks=margins.ticks(*ends)),
        y=Axis(_REGRET, log=True),
        curves=curves,
    )


def _beats(other: _Point, point: _Point, cost: str) -> bool:
    mine, theirs = (point.regret, getattr(point, cost)), (other.regret, getattr(other, cost))
    return theirs != mine and theirs[0] <= mine[0] and theirs[1] <= mine[1]


def profiles(rows: Sequence[Row]) -> Picture | None:
    """Draws which part of its runs an entry scores higher than a threshold in; None where there are no scores."""
    best = sorted((row for row in rows if row.scores.size), key=lambda row: -row.score.value)
    if not best:
        return None
    thresholds = np.linspace(0, 1, 26)
    curves = []
    for place, row in enumerate(best):
        value = performance_profile(row.scores, tasks_of(row.result), thresholds)
        curves.append(curve(_label(row, rows), thresholds, value, "band", _first(row, place)))
    medians = ((_label(row, rows), float(np.median(row.scores))) for row in best)
    return Picture(
        id=_identity("profile", rows),
        title=f"Performance profile, {rows[0].result.suite}",
        caption="The part of all runs with a higher normalised score than a threshold, in its pointwise 95 % band: who "
        "lies above another everywhere is better however runs are summed up.",
        words=f"Medians of scores, best first: {_said(medians)}.",
        x=Axis("normalised score"),
        y=Axis("part of runs with a higher score"),
        curves=curves,
    )


def exposure(rows: Sequence[Row], number: int) -> Picture | None:
    """Draws shares of the pulls beside deserved shares, most deserving arm first; None where results hold none."""
    task = rows[0].result.tasks[number]
    arms = sum(name.startswith(f"{_DUE}[") for name in task.extra)
    holding = [
        row for row in _best_first(rows, number)
        if all(f"{part}[{arm}]" in row.result.tasks[number].extra for part in (_DUE, _GOT) for arm in range(arms))
    ]  # fmt: skip
    if not arms or not holding:
        return None
    due, _ = _shares(holding[0].result.tasks[number], arms)
    places = np.arange(1, arms + 1)
    curves, off = [], []
    for place, row in enumerate(holding):
        _, got = _shares(row.result.tasks[number], arms)
        curves.append(curve(_label(row, rows), places, alone(got), shown=_first(row, place)))
        off.append((_label(row, rows), float(np.abs(got - due).sum())))
    # Last, so that it lies on top of those that come near it.
    curves.append(curve("deserved", places, alone(due), "front"))
    return Picture(
        id=_identity("exposure", rows, task.task),
        title=f"Shares, {task.task}",
        caption="Shares of the pulls by arm, in order of what arms deserve, beside what they deserve: the mean over "
        "seeds and agents.",
        words=f"Absolute differences from deserved shares, added up over arms: {_said(off)}.",
        x=Axis("arm, by what it deserves"),
        y=Axis("share of pulls"),
        curves=curves,
    )


def _shares(task: TaskResult, arms: int) -> tuple[Array, Array]:
    """Returns deserved shares and shares of pulls, the mean over seeds."""
    due, got = ([np.mean(task.extra[f"{part}[{arm}]"]) for arm in range(arms)] for part in (_DUE, _GOT))
    return np.array(due), np.array(got)


def of_group(rows: Sequence[Row]) -> list[Picture]:
    """Returns all figures of a group but the first section's."""
    pictures: list[Picture | None] = []
    for number in range(len(rows[0].result.tasks)):
        pictures += [regret_curves(rows, number), exposure(rows, number)]
        pictures += [front(rows, number, cost) for cost in ("epsilon", "bytes")]
    pictures.append(profiles(rows))
    return [picture for picture in pictures if picture is not None]
