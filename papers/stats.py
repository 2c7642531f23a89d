"""What a paper's tables say of runs: means and ratios of regret with their uncertainty, and the verdicts from them.

The unit of replication is the problem instance: where several seeds play one instance, their mean is one value.
Verdicts on bounds come from :func:`verdict`, which gives none for fewer than :data:`ENOUGH` instances.

Intervals are meant to hold the true value with probability .95; ``docs/measures.md`` says how often they do where
regret is skewed. A joint verdict "holds" on several ratios has no larger error probability than one on a single ratio,
since each has to hold. A joint verdict "does not hold" is less safe, since one wrong verdict among them is enough.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isnan
from typing import Any, Literal

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import Claim, Composition
from fedbandit_envs.experiments.measures import mean_with_interval, ratio_with_interval
from fedbandit_envs.experiments.result import RunResult

ENOUGH = 20
"""Smallest number of problem instances from which a verdict follows; figures from fewer are exploratory."""

Statement = Literal["holds", "does **not** hold", "undecided", "exploratory"]
FAILS: Statement = "does **not** hold"
Row = dict[str, Any]
"""A line of a table: its cells by the heads of all columns, in order."""
Verdict = tuple[str, Any, str]
"""A line of a table of verdicts: what was measured, the figures, and the verdict."""
Curves = Mapping[str, Mapping[Any, Any]]
"""Values by the name of a curve and by x."""


@dataclass(frozen=True)
class Mean:
    """A mean with its 95 % interval; the ends are NaN if there is none.

    Attributes:
        value: The mean.
        low: Lower end of the interval.
        high: Upper end of the interval.
        instances: Number of problem instances that the interval is over.
        spec: Format with which the numbers are written.
    """

    value: float
    low: float
    high: float
    instances: int
    spec: str = ".0f"

    def __str__(self) -> str:
        """Returns the value and its interval, as far as there are any."""
        ends = "" if isnan(self.low) else f"[{self.low:{self.spec}}, {self.high:{self.spec}}]"
        return ends if isnan(self.value) else f"{self.value:{self.spec}} {ends}".strip()

    def contains(self, number: float) -> Statement:
        """Returns the verdict on whether a number lies within the interval, as the true value does."""
        return "exploratory" if self.instances < ENOUGH else holds_if(self.low <= number <= self.high)

    def at_most(self, bound: float = 1) -> Statement:
        """Returns the verdict on whether the value is at most ``bound``; undecided if the interval contains it."""
        return verdict(self, high=bound)


@dataclass(frozen=True)
class Ratio(Mean):
    """A ratio with its 95 % interval; the value is NaN if this is only a prediction interval."""

    spec: str = ".3f"


class _OfItself(Ratio):
    def __str__(self) -> str:
        return "1"


def verdict(measure: Mean, low: float = -inf, high: float = inf) -> Statement:
    """Returns the verdict on whether the true value of what was measured lies between two bounds.

    It holds if the whole interval lies there, does not hold if it lies outside; else it is undecided. For fewer
    than :data:`ENOUGH` instances there is no verdict, but "exploratory".
    """
    if measure.instances < ENOUGH:
        return "exploratory"
    if low <= measure.low and measure.high <= high:
        return "holds"
    return FAILS if measure.high < low or high < measure.low else "undecided"


def holds_if(condition: bool) -> Statement:
    """Returns the verdict "holds" if the condition is true, else "does **not** hold"."""
    return "holds" if condition else FAILS


def all_hold(statements: Iterable[Statement]) -> Statement:
    """Returns the joint verdict on statements.

    It is "exploratory" if some statement is; else "does **not** hold" if some statement does not hold; else
    "undecided" if some statement is; else "holds".
    """
    found = set(statements)
    worst: tuple[Statement, ...] = ("exploratory", FAILS, "undecided")
    return next((statement for statement in worst if statement in found), "holds")


def all_within(values: Iterable[Mean], low: float = -inf, high: float = 1) -> Statement:
    """Returns the joint verdict on whether all values lie between two bounds.

    By default they have to be at most 1, as a ratio of regret is where the first algorithm has less.
    """
    return all_hold(verdict(value, low, high) for value in values)


def judged(what: str, values: Iterable[Mean]) -> Verdict:
    """Returns a line of a table of verdicts: what was measured, all values, and :func:`all_within`."""
    values = list(values)
    return what, values[0] if len(values) == 1 else joined(values), all_within(values)


def each_judged(values: Mapping[str, Mean]) -> Iterator[Verdict]:
    """Returns a line of a table of verdicts for each value by its name: whether it is at most 1."""
    return (judged(name, [value]) for name, value in values.items())


def joined(values: Iterable[Mean]) -> str:
    """Returns several values as text."""
    return "; ".join(map(str, values))


def lies_within(number: float, measure: Mean) -> str:
    """Returns a text that says whether a number lies within the interval of a measured mean or ratio."""
    lies = {"holds": "lies", FAILS: "does **not** lie"}.get(measure.contains(number))
    return f"{number:g} {lies} within the interval" if lies else f"whether it is {number:g}: exploratory"


def by_instance(result: RunResult, values: Array) -> Array:
    """Returns the mean over all seeds of each problem instance.

    Args:
        result: The run, whose seeds are assigned to its instances cyclically, or draw an instance each.
        values: One value for each seed on the last axis, ``(..., seeds)``.

    Returns:
        One value for each instance, ``(..., instances)``.
    """
    if result.instances is None:
        return values
    return np.asarray(values.reshape(*values.shape[:-1], -1, result.instances).mean(axis=-2))


def regret_by_instance(result: RunResult, checkpoint: int = -1) -> Array:
    """Returns the cumulative regret on each problem instance, averaged over agents and seeds, ``(instances,)``."""
    return by_instance(result, result.regret[checkpoint].mean(axis=1))


def mean_of(values: Array, spec: str = ".0f") -> Mean:
    """Returns the mean of values ``(instances,)`` with its 95 % interval, or without one if they are too few."""
    return Mean(*mean_with_interval(values), values.size, spec)


def final_regret(result: RunResult) -> Mean:
    """Returns cumulative regret per agent at the horizon, with its 95 % interval over instances."""
    return mean_of(regret_by_instance(result))


def of_all_agents(result: RunResult) -> Mean:
    """Returns cumulative regret of all agents together at the horizon, with its 95 % interval over seeds."""
    return mean_of(result.regret[-1].sum(axis=1), ",.0f")


def over_rounds(result: RunResult) -> dict[int, Mean]:
    """Returns the curve of cumulative regret per agent over rounds; each mean has its interval over instances."""
    return curve_of(result, by_instance(result, result.regret.mean(axis=2)))


def curve_of(result: RunResult, values: Array) -> dict[int, Mean]:
    """Returns the curve over rounds of values ``(checkpoints, instances)``, each mean with its interval."""
    return {at: mean_of(own) for at, own in zip(result.rounds, values, strict=True)}


def compare(above: Array, below: Array) -> Ratio:
    """Returns the ratio of the means of two arrays ``(instances,)``, with its 95 % interval."""
    return Ratio(*ratio_with_interval(above, below), above.size)


def ratio(above: RunResult, below: RunResult, checkpoint: int = -1) -> Ratio:
    """Returns the regret of one run divided by that of another over the same problem instances.

    The ratio of a run to itself is written as 1.

    Args:
        above: The run whose regret is divided.
        below: The run by whose regret it is divided.
        checkpoint: Index of the checkpoint at which regret is taken; the horizon by default.

    Raises:
        ValueError: The runs have different numbers of seeds, or of problem instances.
    """
    top, under = (regret_by_instance(run, checkpoint) for run in (above, below))
    if (top.size, above.instances) != (under.size, below.instances):
        raise ValueError(f"below has {under.size} instances; the {top.size} of above are required")
    return _OfItself(1.0, 1.0, 1.0, top.size) if above is below else compare(top, under)


def over(above: Mapping[Any, RunResult], below: RunResult | Mapping[Any, RunResult]) -> dict[Any, Ratio]:
    """Returns for each x the ratio of a run's regret to another's: to ``below`` itself, or to ``below[x]``."""
    return {x: ratio(run, below[x] if isinstance(below, Mapping) else below) for x, run in above.items()}


def over_line(lines: Mapping[str, Mapping[Any, RunResult]], rival: str) -> dict[str, dict[Any, Ratio]]:
    """Returns for each algorithm but the rival the ratio of its regret to the rival's, by name and x."""
    return {name: over(own, lines[rival]) for name, own in lines.items() if name != rival}


def links(runs: Iterable[RunResult]) -> list[Ratio]:
    """Returns the ratio of each run's regret to the next one's."""
    return [ratio(before, after) for before, after in pairwise(runs)]


def falling(points: Mapping[float, RunResult]) -> list[Ratio]:
    """Returns the ratio of regret at each x to that at the next smaller x, the largest x first."""
    return links([points[x] for x in sorted(points, reverse=True)])


def falls(points: Mapping[float, RunResult]) -> Statement:
    """Returns the verdict on whether regret falls with each x."""
    return all_within(falling(points))


def exponents(points: Mapping[float, RunResult]) -> Array:
    """Returns for each instance the exponent p of regret growing as x^p, fitted to logarithms, ``(instances,)``."""
    regret = np.array([regret_by_instance(result) for result in points.values()])
    return np.asarray(np.polyfit(np.log(list(points)), np.log(regret), 1)[0])


def least(results: Mapping[str, RunResult], start: str = "") -> str:
    """Returns the name of the run with the least mean regret among those whose names begin with ``start``."""
    names = [name for name in results if name.startswith(start)]
    return min(names, key=lambda name: float(regret_by_instance(results[name]).mean()))


def pays_at(points: Mapping[float, Ratio]) -> str:
    """Returns as text the x at which the whole interval of a ratio of regrets is at most 1.

    The text is ``exploratory`` if a ratio has too few instances, and ``none of those tried`` if no x qualifies.
    """
    found = {x: value.at_most() for x, value in points.items()}
    if "exploratory" in found.values():
        return "exploratory"
    return ", ".join(f"{x:g}" for x, says in found.items() if says == "holds") or "none of those tried"


def claim_of(result: RunResult, composition: Composition) -> Claim:
    """Returns a result's privacy claim under a composition, for the adjacency that its claims begin with."""
    kind = (result.claims[0].adjacency, composition)
    return next(claim for claim in result.claims if (claim.adjacency, claim.composition) == kind)


def each(lines: Curves, measure: Callable[..., Any], *others: Curves) -> dict[str, dict[Any, Any]]:
    """Returns the value of a function of each result, and of those of the same name and x in other curves."""
    return {
        name: {x: measure(result, *(other[name][x] for other in others)) for x, result in own.items()}
        for name, own in lines.items()
    }


def spread(values: Iterable[float | Mean], spec: str) -> str:
    """Returns the smallest and the largest of some values as text."""
    found = [one.value if isinstance(one, Mean) else one for one in values]
    return f"{min(found):{spec}} to {max(found):{spec}}"


def bounded(head: str, what: str, here: Mean | str, bound: float | None = None) -> Row:
    """Returns a row of a table of verdicts: what was measured, and whether it is at most a bound, if there is one.

    Args:
        head: Head of the first column.
        what: What was measured.
        here: The measurement.
        bound: The bound; None for a measurement without a verdict.
    """
    limit, says = "", ""
    if bound is not None and isinstance(here, Mean):
        limit, says = f"at most {bound:.3g}", here.at_most(bound)
    return {head: what, "here": here, "bound": limit, "verdict": says}


def by_x(curves: Curves, head: str, label: str, names: Iterable[str] = ()) -> list[Row]:
    """Returns the rows of a table with a row for each x and a column for each curve.

    Args:
        curves: For each curve's name its cells by x; all curves have the same values of x.
        head: Head of the first column, which names x.
        label: Format of the first column's cells, such as ``"{:g} agents"``.
        names: Names of the curves that become columns, in order; all by default.
    """
    columns = {name: curves[name] for name in names or curves}
    xs = next(iter(columns.values()))
    return [{head: label.format(x)} | {name: own[x] for name, own in columns.items()} for x in xs]


def by_line(curves: Curves, head: str, label: str) -> list[Row]:
    """Returns the lines of a table that has a line for each curve and a column for each x.

    Args:
        curves: Cells by the name of the curve and by x.
        head: Head of the first column, which has the names of the curves.
        label: Format of the heads of the other columns, such as ``"{:g} agents"``.
    """
    return [{head: name} | {label.format(x): cell for x, cell in own.items()} for name, own in curves.items()]
