"""The figures of the page: regret against epsilon, regret curves, Pareto fronts, performance profiles and exposure."""

from collections.abc import Callable, Iterable, Sequence
from math import inf, isnan

import numpy as np

from fedbandit_envs.baselines.comparison_lines import SILENT, TUNED
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.board.report.figure_data import (
    Axis,
    FigureData,
    Margins,
    curve,
    without_interval,
)
from fedbandit_envs.leaderboard.board.report.rows import RankedRow, lines_of, tasks_of
from fedbandit_envs.leaderboard.board.result import TaskResult
from fedbandit_envs.leaderboard.board.scores import Estimate, mean_with_interval, performance_profile

_DRAWN = 6
"""Number of entries that a crowded figure shows before the reader asks for all."""

_REGRET = "regret per agent (log)"
_DUE, _GOT = "deserved", "pulls"
"""Shares of arms in an exposure task's ``extra``: ``deserved[0]`` is that of the most deserving arm."""


def _mean_regret(row: RankedRow, number: int) -> float:
    """Returns a row's mean regret per agent at the horizon of the task of this number."""
    return float(row.result.tasks[number].regret_array[-1].mean())


def _regrets(rows: Sequence[RankedRow], number: int) -> Estimate:
    """Returns the same of several rows with its intervals, each part ``(rows,)``."""
    last = [row.result.tasks[number].regret_array[-1] for row in rows]
    return Estimate(*np.transpose([mean_with_interval(regret) for regret in last]))


def _label(row: RankedRow, rows: Sequence[RankedRow]) -> str:
    """Returns a row's name, with its track where its entry is on several."""
    several = sum(other.name == row.name for other in rows) > 1
    return f"{row.name} ({row.result.track})" if several else row.name


def _identity(kind: str, rows: Sequence[RankedRow], task: str = "") -> str:
    """Returns the id of a figure's HTML element."""
    result = rows[0].result
    whole = f"{kind}-{task or result.suite}-{result.suite_version}-{result.edition.id}"
    return "".join(letter if letter.isalnum() else "-" for letter in whole)


def _listed(values: Iterable[tuple[str, float]]) -> str:
    return "; ".join(f"{name} {value:.4g}" for name, value in values)


def what_privacy_buys(rows: Sequence[RankedRow], number: int) -> FigureData | None:
    """Returns the figure of regret against epsilon for every private baseline of a task; None where there is none.

    Args:
        rows: The rows of one group.
        number: Number of the task.
    """
    task = rows[0].result.tasks[number]
    lines = lines_of(rows[0].result.suite)

    def epsilon(row: RankedRow) -> float:
        return row.spent_by_task[number].epsilon

    best = sorted(rows, key=lambda row: _mean_regret(row, number))
    found = {line: [_mean_regret(row, number) for row in rows if row.name == lines[line]] for line in lines}
    levels = {line: float(np.mean(regrets)) for line, regrets in found.items() if regrets}
    private: dict[str, list[RankedRow]] = {}
    for row in best:
        if 0 < epsilon(row) < inf and not _is_placebo(row) and row.name not in lines.values():
            private.setdefault(row.name + (" (few messages)" if row.limited else ""), []).append(row)
    if not private:
        return None
    epsilons = [epsilon(row) for own in private.values() for row in own]
    span = [min(epsilons) / 2, max(epsilons) * 2]
    curves = [
        curve(f"{line}: {lines[line]}", span, without_interval(np.full(2, level)), "level")
        for line, level in levels.items()
    ]
    for name, own in private.items():
        ascending = sorted(own, key=epsilon)
        curves.append(curve(name, map(epsilon, ascending), _regrets(ascending, number)))
    least = [(name, _mean_regret(own[0], number)) for name, own in private.items()]
    return FigureData(
        id=_identity("buys", rows, task.task),
        title=task.task,
        caption=f"After {task.rounds[-1]:,} rounds, with 95 % intervals over {len(task.seeds)} seeds.",
        words=f"Levels: {_listed(levels.items())}. Least regret of each private baseline: {_listed(least)}.",
        x=Axis("epsilon claimed (log)", log=True),
        y=Axis(_REGRET, log=True),
        curves=curves,
    )


def _is_placebo(row: RankedRow) -> bool:
    """Returns whether a row is a baseline's whose messages are emptied of data."""
    known = row.result.entry.kind == "baseline" and row.name in BASELINES
    return known and "placebo" in BASELINES[row.name].wrappers


def _best_first(rows: Sequence[RankedRow], number: int) -> list[RankedRow]:
    """Sorts rows by their regret on a task; those that were shown what agents do not know come last."""
    return sorted(rows, key=lambda row: (row.revealed, _mean_regret(row, number)))


def regret_curves(rows: Sequence[RankedRow], number: int) -> FigureData:
    """Returns the figure of mean regret over rounds, in its interval, of all rows of a group on one task."""
    task = rows[0].result.tasks[number]
    best = _best_first(rows, number)
    curves = []
    for place, row in enumerate(best):
        own = row.result.tasks[number]
        # At most 15 checkpoints, evenly spaced, the last among them.
        keep = np.unique(np.linspace(0, len(own.rounds) - 1, min(len(own.rounds), 15)).round().astype(int))
        regret = mean_with_interval(own.regret_array[keep])
        # An entry that is shown the truth may have no regret, which a logarithmic axis cannot show.
        positive = regret.value > 0
        if positive.any():
            shown = Estimate(*(part[positive] for part in regret))
            rounds = np.asarray(own.rounds)[keep][positive]
            curves.append(curve(_label(row, rows), rounds, shown, "band", _is_shown_first(row, place)))
    ends_at = ((_label(row, rows), _mean_regret(row, number)) for row in best)
    return FigureData(
        id=_identity("curves", rows, task.task),
        title=f"Regret over rounds, {task.task}",
        caption=f"Cumulative regret per agent, the mean over {len(task.seeds)} seeds in its 95 % band. The best "
        f"{_DRAWN}, silence and submissions are drawn first.",
        words=f"After {task.rounds[-1]:,} rounds, least first: {_listed(ends_at)}.",
        x=Axis("round (log)", log=True),
        y=Axis("cumulative regret per agent (log)", log=True),
        curves=curves,
    )


def _is_shown_first(row: RankedRow, place: int) -> bool:
    """Returns whether a crowded figure shows a row before the reader asks for all."""
    lines = lines_of(row.result.suite)
    silent = row.name in (lines.get(SILENT), lines.get(TUNED))
    return place < _DRAWN or silent or row.result.entry.kind == "submission"


def front(rows: Sequence[RankedRow], number: int, cost: str) -> FigureData | None:
    """Returns the figure of regret against a cost, with its Pareto front; None where no row's cost is known.

    Args:
        rows: The rows of one group.
        number: Number of the task.
        cost: ``epsilon`` or ``bytes``.
    """
    task = rows[0].result.tasks[number]
    price: Callable[[RankedRow], float] = {
        "epsilon": lambda row: row.spent_by_task[number].epsilon,
        "bytes": lambda row: float(np.mean(row.result.tasks[number].bytes)),
    }[cost]
    competing = [row for row in rows if not row.revealed]
    # Cost and regret of each row, by its id.
    at = {row.id: (price(row), _mean_regret(row, number)) for row in competing if not isnan(price(row))}
    drawn = sorted((row for row in competing if row.id in at), key=lambda row: at[row.id])
    if not drawn:
        return None

    def is_beaten(row: RankedRow) -> bool:
        mine = at[row.id]
        return any(other != mine and other[0] <= mine[0] and other[1] <= mine[1] for other in at.values())

    margins = Margins([at[row.id][0] for row in drawn])
    best = [row for row in drawn if not is_beaten(row)]
    steps = without_interval(np.array([at[row.id][1] for row in best]))
    curves = [curve("front", (margins.place(at[row.id][0]) for row in best), steps, "front")]
    groups = [(_label(row, rows), [row]) for row in best]
    for name, own in [*groups, ("beaten", [row for row in drawn if is_beaten(row)])]:
        if own:
            texts = [_label(row, rows) for row in own]
            places = (margins.place(at[row.id][0]) for row in own)
            curves.append(curve(name, places, _regrets(own, number), "points", texts=texts))
    unit = {"epsilon": "epsilon claimed", "bytes": "bytes an agent sends in an episode"}[cost]
    ticks = margins.ticks("0", "\N{INFINITY}" if cost == "epsilon" else "")
    missing = len(competing) - len(drawn)
    return FigureData(
        id=_identity(f"front-{cost}", rows, task.task),
        title=f"Regret against {cost}, {task.task}",
        caption=f"Every row at its regret and its {unit}. On the front are those that no other beats in both"
        + (f"; {missing} whose {cost} is not known are left out." if missing else "."),
        words=f"On the front, from the least {cost} on: {', '.join(_label(row, rows) for row in best)}.",
        x=Axis(f"{unit} (log)", log=True, ticks=ticks),
        y=Axis(_REGRET, log=True),
        curves=curves,
    )


def profiles(rows: Sequence[RankedRow]) -> FigureData | None:
    """Returns the performance profiles: which part of its runs scores above a threshold; None without scores."""
    best = sorted((row for row in rows if row.scores.size), key=lambda row: -row.score.value)
    if not best:
        return None
    thresholds = np.linspace(0, 1, 26)
    curves = []
    for place, row in enumerate(best):
        value = performance_profile(row.scores, tasks_of(row.result), thresholds)
        curves.append(curve(_label(row, rows), thresholds, value, "band", _is_shown_first(row, place)))
    medians = ((_label(row, rows), float(np.median(row.scores))) for row in best)
    return FigureData(
        id=_identity("profile", rows),
        title=f"Performance profile, {rows[0].result.suite}",
        caption="The part of all runs with a higher normalised score than a threshold, in its pointwise 95 % band: an "
        "entry that lies above another everywhere is better however runs are summed up.",
        words=f"Medians of scores, best first: {_listed(medians)}.",
        x=Axis("normalised score"),
        y=Axis("part of runs with a higher score"),
        curves=curves,
    )


def exposure(rows: Sequence[RankedRow], number: int) -> FigureData | None:
    """Returns the figure of arms' shares of pulls beside deserved shares; None where results have no such shares."""
    task = rows[0].result.tasks[number]
    arms = sum(name.startswith(f"{_DUE}[") for name in task.extra)
    needed = {f"{part}[{arm}]" for part in (_DUE, _GOT) for arm in range(arms)}
    holding = [row for row in _best_first(rows, number) if needed <= row.result.tasks[number].extra.keys()]
    if not arms or not holding:
        return None
    due = _shares(holding[0].result.tasks[number], _DUE, arms)
    places = np.arange(1, arms + 1)
    curves, off = [], []
    for place, row in enumerate(holding):
        got = _shares(row.result.tasks[number], _GOT, arms)
        shown = _is_shown_first(row, place)
        curves.append(curve(_label(row, rows), places, without_interval(got), shown=shown))
        off.append((_label(row, rows), float(np.abs(got - due).sum())))
    # Drawn last, on top of the curves that come near it.
    curves.append(curve("deserved", places, without_interval(due), "front"))
    return FigureData(
        id=_identity("exposure", rows, task.task),
        title=f"Shares, {task.task}",
        caption="Shares of the pulls by arm, in order of what arms deserve, beside what they deserve: the mean over "
        "seeds and agents.",
        words=f"Absolute differences from deserved shares, added up over arms: {_listed(off)}.",
        x=Axis("arm, by what it deserves"),
        y=Axis("share of pulls"),
        curves=curves,
    )


def _shares(task: TaskResult, part: str, arms: int) -> Array:
    """Returns shares of arms, the mean over seeds, float64 ``(arms,)``."""
    return np.array([np.mean(task.extra[f"{part}[{arm}]"]) for arm in range(arms)])


def of_group(rows: Sequence[RankedRow]) -> list[FigureData]:
    """Returns all figures of a group but those of :func:`what_privacy_buys`."""
    figures: list[FigureData | None] = []
    for number in range(len(rows[0].result.tasks)):
        figures += [regret_curves(rows, number), exposure(rows, number)]
        figures += [front(rows, number, cost) for cost in ("epsilon", "bytes")]
    figures.append(profiles(rows))
    return [figure for figure in figures if figure is not None]
