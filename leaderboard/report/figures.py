"""The figures of the page: regret against epsilon, regret curves, Pareto fronts, performance profiles and exposure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite, isnan, log10
from typing import Any, Literal, NamedTuple

import numpy as np

from fedbandit_envs.baselines.comparison_lines import (
    BASELINE_OF,
    OURS,
    OURS_TUNED,
    SILENT,
    TRUE,
    TRUE_TUNED,
    TUNED,
)
from fedbandit_envs.leaderboard.report.rows import RankedRow, lines_of
from fedbandit_envs.leaderboard.scores import Estimate, mean_with_interval, performance_profile, rounded

_DRAWN = 6
"""In figures with a curve for every entry: number of best entries that are drawn before the reader asks for more."""

_REGRET = "regret per agent (log)"

Form = Literal["line", "band", "level", "points", "front"]
"""How a curve is drawn.

``line``: points with error bars, joined; ``band``: a line in a shaded band; ``level``: a horizontal line; ``points``:
points that are not joined; ``front``: a line in steps.
"""


class FigureData(NamedTuple):
    """A figure of the page.

    Attributes:
        id: Id of its HTML element.
        title: Heading.
        caption: Text that says what is drawn and how to read it.
        words: Text that says what can be seen in the figure, for readers who cannot see it.
        x: Title of the horizontal axis: quantity and unit.
        y: Title of the vertical axis.
        curves: The curves, each made by :func:`curve`.
        log: Whether both axes are logarithmic.
        ticks: Additional labelled positions beside the scale of the horizontal axis: position, and label.
    """

    id: str
    title: str
    caption: str
    words: str
    x: str
    y: str
    curves: Sequence[Mapping[str, Any]]
    log: bool = True
    ticks: Sequence[tuple[float, str]] = ()


def curve(
    name: str,
    x: Iterable[float],
    y: Estimate,
    form: Form = "line",
    shown: bool = True,
    texts: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Returns one curve of a figure, with its confidence intervals, as the data that the script ``page.js`` draws.

    Args:
        name: Label in the legend.
        x: Abscissas of the points, ``(points,)``; for a horizontal line the abscissas of its two ends.
        y: Estimates at these points. ``y.value`` has shape ``(points,)``; ``y.low`` and ``y.high`` have the same
            shape, or are NaN if there are no intervals.
        form: How the curve is drawn: one of :data:`Form`.
        shown: Whether the curve is drawn at first; if not, only when the reader asks for it.
        texts: Labels of the points, if they differ from ``name``.

    Returns:
        A dictionary of the arguments by name. In place of the estimates it has the lists ``y``, ``low`` and ``high``,
        rounded to more digits than a figure shows, with None for numbers that are not finite. ``low`` and ``high`` are
        left out if one of the points has no interval.
    """
    places = [float(f"{at:.6g}") for at in x]
    ends = (None, None) if np.isnan(y.low).any() else (_rounded(y.low, 3), _rounded(y.high, 3))
    parts = {"x": places, "y": _rounded(y.value, 4), "low": ends[0], "high": ends[1], "texts": texts}
    given = {part: values for part, values in parts.items() if values is not None}
    return {"name": name, "form": form, "shown": shown, **given}


def _rounded(numbers: Iterable[float], digits: int) -> list[float | None]:
    rounded = [float(f"{number:.{digits}g}") if isfinite(number) else None for number in numbers]
    # Whole numbers become integers, which JSON writes without ".0": that keeps the page small.
    return [int(one) if one is not None and one.is_integer() else one for one in rounded]


def _listed(values: Iterable[tuple[str, Estimate | float]]) -> str:
    """Returns names with their values as text: an estimate with its interval, another number with three digits."""
    texts = ((name, rounded(v) if isinstance(v, Estimate) else f"{v:.3g}") for name, v in values)
    return "; ".join(f"{name} {text}" for name, text in texts)


class GroupFigures:
    """Makes the figures of one suite in one edition; its methods take the index of a task in the suite, from 0."""

    def __init__(self, rows: Sequence[RankedRow]) -> None:
        """Keeps the rows from which figures are made.

        A baseline that was played openly is left out if there is another row of it on the track: both have the same
        seeds.

        Args:
            rows: All rows of the suite in the edition.
        """
        ranked = {(row.result.entry.kind, row.name, row.result.track) for row in rows if row.rank}
        self._rows = [
            row for row in rows if row.rank or ("baseline", row.name, row.result.track) not in ranked
        ]
        self._result = rows[0].result
        self._lines = lines_of(self._result.suite)

    def all(self) -> list[FigureData]:
        """Returns the figures of all tasks (regret curves, exposure, Pareto fronts) and the performance profiles.

        Figures of regret against epsilon are not among them: :meth:`privacy` returns those.
        """
        figures = []
        for number in range(len(self._result.tasks)):
            figures += [self.regret_curves(number), self.exposure(number)]
            figures += [self.front(number, cost) for cost in ("epsilon", "bytes")]
        return [figure for figure in (*figures, self.profiles()) if figure is not None]

    def privacy(self, number: int) -> FigureData | None:
        """Returns the figure of regret against epsilon of all private entries on a task; None if there are none.

        Args:
            number: Index of the task.
        """
        task, lines = self._result.tasks[number], self._lines

        def epsilon(row: RankedRow) -> float:
            return row.spent_by_task[number].epsilon

        levels = {}
        for line, name in lines.items():
            if regrets := [row.regret(number) for row in self._rows if row.name == name]:
                levels[line] = float(np.mean(regrets))
        noisy = [row for row in self._rows if 0 < epsilon(row) < inf and not row.is_placebo]
        private: dict[str, list[RankedRow]] = {}
        for row in sorted(noisy, key=epsilon):
            name = row.name if row.track.messages is None else f"{row.name} (few messages)"
            if row.name not in lines.values():
                private.setdefault(name, []).append(row)
        if not private:
            return None
        least = {name: min(own, key=lambda row: row.regret(number)) for name, own in private.items()}
        epsilons = [epsilon(row) for own in private.values() for row in own]
        span = [min(epsilons) / 2, max(epsilons) * 2]
        curves = [
            curve(f"{line}: {lines[line]}", span, Estimate(np.full(2, level)), "level")
            for line, level in levels.items()
        ]
        best = sorted(least, key=lambda name: least[name].regret(number))
        curves += [curve(name, map(epsilon, private[name]), _regrets(private[name], number)) for name in best]
        return FigureData(
            id=self._id("buys", task.task),
            title=task.task,
            caption=f"After {task.rounds[-1]:,} rounds, with 95 % intervals over {len(task.seeds)} seeds."
            + _like_with_like(self._result.suite),
            words=f"Levels: {_listed(levels.items())}. Least regret of each private baseline: "
            f"{_listed((name, _regret(least[name], number)) for name in best)}.",
            x="epsilon claimed (log)",
            y=_REGRET,
            curves=curves,
        )

    def regret_curves(self, number: int) -> FigureData:
        """Returns the figure of mean regret over rounds, with 95 % bands, of all entries on a task.

        Args:
            number: Index of the task.
        """
        task = self._result.tasks[number]
        best = self._best_first(number)

        def positive(row: RankedRow) -> tuple[Any, Estimate]:
            """Returns rounds and regret of a row where regret is positive, since a logarithmic axis cannot show 0."""
            own = row.result.tasks[number]
            # At most 15 of the checkpoints, evenly spaced among all, with the last one, keep the page small.
            count = min(len(own.rounds), 15)
            keep = np.unique(np.linspace(0, len(own.rounds) - 1, count).round().astype(int))
            regret = mean_with_interval(own.regret_array[keep])
            drawn = regret.value > 0
            return np.asarray(own.rounds)[keep][drawn], Estimate(*(part[drawn] for part in regret))

        return FigureData(
            id=self._id("curves", task.task),
            title=f"Regret over rounds, {task.task}",
            caption=f"Cumulative regret per agent, the mean over {len(task.seeds)} seeds in its 95 % band. The best "
            f"{_DRAWN}, silence and submissions are drawn first.",
            words=f"After {task.rounds[-1]:,} rounds, least first: "
            f"{_listed((row.label, _regret(row, number)) for row in best)}.",
            x="round (log)",
            y="cumulative regret per agent (log)",
            curves=self._crowd(best, positive, "band"),
        )

    def front(self, number: int, cost: Literal["epsilon", "bytes"]) -> FigureData | None:
        """Returns the figure of regret against a cost of all entries on a task, with the Pareto front.

        Args:
            number: Index of the task.
            cost: ``epsilon`` for the claimed privacy loss, ``bytes`` for the bytes that an agent sends.

        Returns:
            The figure; None if no entry's cost is known.
        """
        task = self._result.tasks[number]

        def paid(row: RankedRow) -> float:
            own = row.result.tasks[number]
            return row.spent_by_task[number].epsilon if cost == "epsilon" else float(np.mean(own.bytes))

        competing = [row for row in self._rows if not row.track.revealed]
        priced = [(paid(row), row.regret(number), row) for row in competing]
        points = sorted((point for point in priced if not isnan(point[0])), key=lambda point: point[:2])
        if not points:
            return None
        prices = [price for price, _, _ in points]
        finite = [price for price in prices if 0 < price < inf] or [1.0]
        # Costs 0 and infinity, which a logarithmic scale cannot show, are drawn to the left and right of all others.
        gap = 10 ** max(0.25, 0.12 * log10(max(finite) / min(finite)))
        ends = {0.0: min(finite) / gap, inf: max(finite) * gap}
        best: list[tuple[float, RankedRow]] = []
        beaten: list[tuple[float, RankedRow]] = []
        least: tuple[float, float] = (inf, inf)
        for price, regret, row in points:
            # Points are sorted by cost, so ``least``, the last point on the front, has no higher cost than this one and
            # the least regret so far. This point is beaten if its regret is no lower, unless both are equal.
            is_beaten = (price, regret) != least and least[1] <= regret
            least = least if is_beaten else (price, regret)
            (beaten if is_beaten else best).append((ends.get(price, price), row))
        steps = Estimate(np.array([row.regret(number) for _, row in best]))
        curves = [curve("front", [at for at, _ in best], steps, "front")]
        for name, drawn in (*((one[1].label, [one]) for one in best), ("beaten", beaten)):
            if drawn:
                places, rows = zip(*drawn, strict=True)
                texts = [row.label for row in rows]
                curves.append(curve(name, places, _regrets(rows, number), "points", texts=texts))
        unit = {"epsilon": "epsilon claimed", "bytes": "bytes an agent sends in an episode"}[cost]
        missing = len(competing) - len(points)
        return FigureData(
            id=self._id(f"front-{cost}", task.task),
            title=f"Regret against {cost}, {task.task}",
            caption=f"Every row at its regret and its {unit}. On the front are those that no other beats in both"
            + (f"; {missing} whose {cost} is not known are left out." if missing else "."),
            words=f"On the front, from the least {cost} on: {', '.join(row.label for _, row in best)}.",
            x=f"{unit} (log)",
            y=_REGRET,
            curves=curves,
            ticks=[(ends[end], label) for end, label in ((0.0, "0"), (inf, "\N{INFINITY}")) if end in prices],
        )

    def profiles(self) -> FigureData | None:
        """Returns the figure of performance profiles; None without scores.

        It shows for each entry the fraction of its runs whose score exceeds a threshold, over all thresholds.
        """
        best = sorted((row for row in self._rows if row.scores.size), key=lambda row: -row.score.value)
        if not best:
            return None
        thresholds = np.linspace(0, 1, 26)

        def profile(row: RankedRow) -> tuple[Any, Estimate]:
            return thresholds, performance_profile(row.scores, row.result.run_tasks, thresholds)

        medians = ((row.label, float(np.median(row.scores))) for row in best)
        return FigureData(
            id=self._id("profile", self._result.suite),
            title=f"Performance profile, {self._result.suite}",
            caption="The part of all runs with a higher normalised score than a threshold, in its pointwise 95 % band: "
            "an entry that lies above another everywhere is better however runs are summed up.",
            words=f"Medians of scores, best first: {_listed(medians)}.",
            x="normalised score",
            y="part of runs with a higher score",
            curves=self._crowd(best, profile, "band"),
            log=False,
        )

    def exposure(self, number: int) -> FigureData | None:
        """Returns the figure that compares each arm's share of the pulls with the share that it deserves.

        Args:
            number: Index of the task.

        Returns:
            The figure; None if results of the task do not have such shares.
        """
        task = self._result.tasks[number]
        arms = sum(name.startswith("deserved[") for name in task.extra)
        # Names of the shares in the result, arm by arm: deserved[0] is the share that the most deserving arm deserves,
        # pulls[0] the share of pulls that this arm has got.
        due, got = ([f"{part}[{arm}]" for arm in range(arms)] for part in ("deserved", "pulls"))
        holding = [
            row for row in self._best_first(number) if {*due, *got} <= row.result.tasks[number].extra.keys()
        ]
        if not arms or not holding:
            return None

        def shares(row: RankedRow, names: Sequence[str]) -> Any:
            """Returns the shares of these names in a row's result, each a mean over seeds, float64 ``(arms,)``."""
            return np.array([np.mean(row.result.tasks[number].extra[name]) for name in names])

        places, deserved = np.arange(1, arms + 1), shares(holding[0], due)
        off = ((row.label, float(np.abs(shares(row, got) - deserved).sum())) for row in holding)
        curves = self._crowd(holding, lambda row: (places, Estimate(shares(row, got))), "line")
        return FigureData(
            id=self._id("exposure", task.task),
            title=f"Shares, {task.task}",
            caption="Shares of the pulls by arm, in order of what arms deserve, beside what they deserve: the mean "
            "over seeds and agents.",
            words=f"Absolute differences from deserved shares, added up over arms: {_listed(off)}.",
            x="arm, by what it deserves",
            y="share of pulls",
            # The deserved shares are drawn last, so that curves close to them do not hide them.
            curves=[*curves, curve("deserved", places, Estimate(deserved), "front")],
            log=False,
        )

    def _id(self, kind: str, of: str) -> str:
        """Returns the id of a figure's HTML element.

        Args:
            kind: Kind of the figure, such as ``curves``.
            of: Name of the task or suite that it shows.
        """
        whole = f"{kind}-{of}-{self._result.suite_version}-{self._result.edition.id}"
        return "".join(letter if letter.isalnum() else "-" for letter in whole)

    def _best_first(self, number: int) -> list[RankedRow]:
        """Returns all rows sorted by their regret on a task, lowest first.

        Rows of entries that were shown parameters which agents do not know come last.
        """
        return sorted(self._rows, key=lambda row: (row.track.revealed, row.regret(number)))

    def _crowd(
        self, rows: Sequence[RankedRow], points: Callable[[RankedRow], tuple[Any, Estimate]], form: Form
    ) -> list[dict[str, Any]]:
        """Returns one curve for each row, of which only some are drawn before the reader asks for all.

        These are the best few, the baselines that send nothing, and all submissions.

        Args:
            rows: The rows, best first.
            points: Function that returns the abscissas and the estimates of a row; rows without points are left out.
            form: How the curves are drawn: one of :data:`Form`.
        """
        silent = {self._lines.get(line) for line in (SILENT, TUNED)}
        curves = []
        for place, row in enumerate(rows):
            shown = place < _DRAWN or row.name in silent or row.result.entry.kind == "submission"
            curves.append(curve(row.label, *points(row), form, shown))
        return [one for one in curves if one["y"]]


def _like_with_like(suite: str) -> str:
    """Returns the sentence which lines of a suite's figure have the same constants, so that they can be compared."""
    names = BASELINE_OF.get(suite.removesuffix("-quick"))
    if names is None:
        return ""
    own = f"; {names[OURS_TUNED]} and {names[TRUE_TUNED]} have their own" * (names[OURS_TUNED] != names[OURS])
    return (
        f" Compare lines with the same constants: {names[OURS]}, its placebo and {names[TRUE]} have those of tuned "
        f"silence{own}."
    )


def _regrets(rows: Sequence[RankedRow], number: int) -> Estimate:
    """Returns the mean regret of each row at a task's horizon, with 95 % intervals.

    Args:
        rows: The rows.
        number: Index of the task.

    Returns:
        The estimates; ``value``, ``low`` and ``high`` have shape ``(rows,)``.
    """
    return Estimate(*np.transpose([_regret(row, number) for row in rows]))


def _regret(row: RankedRow, number: int) -> Estimate:
    """Returns the mean regret of a row at a task's horizon, with its 95 % interval."""
    return mean_with_interval(row.result.tasks[number].regret_array[-1])
