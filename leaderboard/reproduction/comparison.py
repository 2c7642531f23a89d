"""Comparison of a paper's statements with measurements: ratios of regret with their uncertainty, and verdicts.

Intervals have 95 % coverage, so the true value is beyond a given end of one with probability of about 1 / 40. A joint
verdict "holds" on several ratios is as safe as one on a single ratio, since each ratio has to hold. A joint verdict
"does not hold" is less safe, since one wrong verdict among them is enough.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan, nan
from typing import Any, Literal

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Claim, Composition
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.leaderboard.runs.statistics import (
    FEWEST,
    MIDDLES,
    Middle,
    bootstrap_coverage,
    mean_and_half_width,
    ratio_in_other_strata,
    ratio_with_interval,
    stratum_means,
)

Statement = Literal["holds", "does **not** hold", "undecided"]
_FAILS: Statement = "does **not** hold"


@dataclass(frozen=True)
class Mean:
    """A mean with its 95 % interval, or with the range of the values if they are too few for an interval.

    Attributes:
        value: The mean.
        low: Lower end of the interval; NaN if there is no interval.
        high: Upper end of the interval; NaN if there is no interval.
        least: The smallest value; NaN if there is an interval.
        most: The largest value; NaN if there is an interval.
        spec: Format specification with which the numbers are written.
    """

    value: float
    low: float
    high: float
    least: float = nan
    most: float = nan
    spec: str = field(default=".0f", kw_only=True)

    def __str__(self) -> str:
        """Returns as text the mean with the half width of its interval, or with the range of the values."""
        mean = format(self.value, self.spec)
        if isnan(self.least):
            return f"{mean} ± {(self.high - self.low) / 2:{self.spec}}"
        return f"{mean}, trials {self.least:{self.spec}} to {self.most:{self.spec}}"

    def numbers(self) -> dict[str, float]:
        """Returns those attributes that are not NaN, by their columns in the CSV file of the page."""
        known = {name: getattr(self, name) for name in ("value", "low", "high", "least", "most")}
        return {name: number for name, number in known.items() if not isnan(number)}

    def holds(self, number: float) -> Statement:
        """Returns the verdict on whether a number lies within the interval; undecided if there is no interval."""
        return "undecided" if isnan(self.low) else holds_if(self.low <= number <= self.high)

    def at_most(self, bound: float) -> Statement:
        """Returns the verdict on whether the value is at most ``bound``; undecided if the interval contains it."""
        return "holds" if self.high <= bound else _FAILS if self.low > bound else "undecided"

    def at_least(self, bound: float) -> Statement:
        """Returns the verdict on whether the value is at least ``bound``; undecided if the interval contains it."""
        return "holds" if self.low >= bound else _FAILS if self.high < bound else "undecided"


@dataclass(frozen=True)
class Ratio(Mean):
    """Mean (or median) regret of one run divided by that of another, over the same seeds.

    Attributes:
        value: The ratio; NaN if this is only a predicted interval.
        low: Lower end of the 95 % interval over seeds for fixed problem instances; NaN if seeds are too few for one.
        high: Upper end of that interval; NaN if seeds are too few for one.
        least: Smallest ratio of a single problem instance; of a single seed if there is no interval.
        most: Largest ratio of a single problem instance; of a single seed if there is no interval.
        instances: Plural noun for the instances or seeds, such as ``markets``; empty if the range is not written.
    """

    instances: str = ""

    def __str__(self) -> str:
        """Returns as text the ratio, its interval if known and, if there are several instances, their range."""
        if isnan(self.value):
            return f"[{self.low:.2f}, {self.high:.2f}]"
        text = f"{self.value:.3f}" + ("" if isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]")
        return f"{text}, {self.instances} {self.least:.2f} to {self.most:.2f}" if self.instances else text


def regret_by_seed(result: RunResult, checkpoint: int = -1) -> Array:
    """Returns the cumulative regret of each seed, averaged over agents, ``(seeds,)``.

    Args:
        result: The result of a run.
        checkpoint: Index of the checkpoint at which regret is taken; the horizon by default.
    """
    means: Array = result.regret[checkpoint].mean(axis=1)
    return means


def over_seeds(values: Array, spec: str = ".0f", strata: Array | None = None) -> Mean:
    """Returns the mean over seeds with its 95 % interval, or with the range of the values if seeds are too few.

    Args:
        values: One value for each seed, ``(seeds,)``.
        spec: Format specification with which the numbers are written.
        strata: Index of the problem instance that each seed plays, ``(seeds,)``: the interval is for these instances,
            so that differences between them do not widen it. None for a single stratum.
    """
    mean, half = (float(part) for part in mean_and_half_width(values, strata=strata))
    least, most = (float(values.min()), float(values.max())) if np.isnan(half) else (np.nan, np.nan)
    return Mean(mean, mean - half, mean + half, least, most, spec=spec)


def final_regret(result: RunResult) -> Mean:
    """Returns cumulative regret per agent at the horizon, with its 95 % interval over seeds for fixed instances."""
    return over_seeds(regret_by_seed(result), strata=strata_of_seeds(result))


def over_rounds(result: RunResult) -> dict[int, Mean]:
    """Returns the curve of cumulative regret per agent over rounds.

    Each mean has its 95 % interval over seeds, for fixed problem instances.
    """
    strata, regret = strata_of_seeds(result), result.regret.mean(axis=2)
    return {at: over_seeds(values, strata=strata) for at, values in zip(result.rounds, regret, strict=True)}


def ratio(
    numerator: RunResult, denominator: RunResult, checkpoint: int = -1, middle: Middle = "mean"
) -> Ratio:
    """Returns the regret of one run divided by that of another over the same seeds.

    Args:
        numerator: The run whose regret is divided.
        denominator: The run by whose regret it is divided.
        checkpoint: Index of the checkpoint at which regret is taken; the horizon by default.
        middle: Average over seeds, ``mean`` or ``median``, that is taken of both regrets before they are divided.

    Raises:
        ValueError: The runs have different numbers of seeds, or of problem instances.
    """
    above, below, strata = _paired(numerator, denominator, checkpoint)
    # With too few seeds for an interval, the range of the ratios of single seeds is shown in its place.
    few = above.size < FEWEST
    apart, names = (np.arange(above.size), "trials") if few else (strata, numerator.strata.name)
    of = MIDDLES[middle]
    single = [float(of(above[apart == i]) / of(below[apart == i])) for i in np.unique(apart)]
    name = names if len(single) > 1 else ""
    interval = ratio_with_interval(above, below, strata, middle=middle)
    return Ratio(*interval, min(single), max(single), name)


def compare(above: Array, below: Array) -> Ratio:
    """Returns the ratio of the means of two arrays, with its 95 % interval over seeds.

    Args:
        above: Values of the numerator, one for each seed, ``(seeds,)``.
        below: Values of the denominator for the same seeds, same shape.
    """
    value, low, high = ratio_with_interval(above, below, np.zeros(above.size))
    return Ratio(value, low, high, value, value)


def elsewhere(numerator: RunResult, denominator: RunResult) -> Ratio:
    """Returns the interval in which the ratio of two regrets would be expected on other problem instances.

    It is a 95 % prediction interval for as many instances, drawn from the same distribution. A paper's number should be
    in it if the paper drew other instances than we did.

    Args:
        numerator: The run whose regret is divided.
        denominator: The run by whose regret it is divided.
    """
    return Ratio(nan, *ratio_in_other_strata(*_paired(numerator, denominator)))


def instance_ratios(numerator: RunResult, denominator: RunResult) -> Array:
    """Returns the ratio of two runs' mean regrets on each problem instance, ``(instances,)``.

    Args:
        numerator: The run whose regret is divided.
        denominator: The run by whose regret it is divided.
    """
    above, below, strata = _paired(numerator, denominator)
    return stratum_means(above, strata) / stratum_means(below, strata)


def strata_of_seeds(result: RunResult) -> Array:
    """Returns the index of the problem instance that each seed plays, ``(seeds,)``: seeds take instances in turn."""
    return np.arange(result.regret.shape[1]) % result.strata.count


def _paired(numerator: RunResult, denominator: RunResult, checkpoint: int = -1) -> tuple[Array, Array, Array]:
    """Returns the regret of each seed in both runs, and the index of the problem instance that the seed plays."""
    above, below = regret_by_seed(numerator, checkpoint), regret_by_seed(denominator, checkpoint)
    if (below.size, denominator.strata) != (above.size, numerator.strata):
        raise ValueError(
            f"denominator has {below.size} seeds of {denominator.strata}; the numerator's {above.size} of "
            f"{numerator.strata} are required"
        )
    return above, below, strata_of_seeds(numerator)


def holds_if(condition: bool) -> Statement:
    """Returns the verdict "holds" if the condition is true, else "does **not** hold" (Markdown)."""
    return "holds" if condition else _FAILS


def over(above: Mapping[Any, RunResult], below: RunResult | Mapping[Any, RunResult]) -> dict[Any, Ratio]:
    """Returns for each x the ratio of a run's regret to another run's.

    Args:
        above: The runs whose regret is divided, by x (the quantity that is varied).
        below: The run by whose regret all are divided, or such a run for each x.
    """
    return {x: ratio(run, below[x] if isinstance(below, Mapping) else below) for x, run in above.items()}


def falls(points: Mapping[float, RunResult]) -> tuple[Statement, list[Ratio]]:
    """Returns the verdict on whether regret falls as x rises, and the ratios of regret at neighbouring x.

    Args:
        points: Runs by x.

    Returns:
        The verdict, and for each x but the smallest, largest first, its regret divided by that at the next smaller x.
    """
    return ordered([points[x] for x in sorted(points, reverse=True)])


def claim_of(result: RunResult, composition: Composition) -> Claim:
    """Returns a result's privacy claim under a composition, for the adjacency that its claims begin with.

    Args:
        result: The result of a run.
        composition: How the costs of releases are added up, such as ``exact``.
    """
    kind = (result.claims[0].adjacency, composition)
    return next(claim for claim in result.claims if (claim.adjacency, claim.composition) == kind)


def least(results: Mapping[str, RunResult], start: str = "") -> str:
    """Returns the name of the run with the least mean regret.

    Args:
        results: Runs by name.
        start: Only runs whose names begin with this text are compared.
    """
    names = [name for name in results if name.startswith(start)]
    return min(names, key=lambda name: float(regret_by_seed(results[name]).mean()))


def over_line(lines: Mapping[str, Mapping[Any, RunResult]], rival: str) -> dict[str, dict[Any, Ratio]]:
    """Returns for each algorithm but the rival the ratio of its regret to the rival's, by the algorithm's name and x.

    Args:
        lines: Runs by the algorithm's name and x.
        rival: Name of the algorithm by whose regret the others' is divided.
    """
    return {name: over(own, lines[rival]) for name, own in lines.items() if name != rival}


def pays_at(points: Mapping[float, Ratio]) -> str:
    """Returns a text with the values of a quantity at which regret is below a rival's, by the whole interval.

    Args:
        points: For each value the ratio of regret to the rival's.
    """
    paying = [f"{x:g}" for x, value in points.items() if value.at_most(1) == "holds"]
    return ", ".join(paying) or "none of those tried"


def exponents(points: Mapping[float, RunResult]) -> Array:
    """Returns for each seed the exponent p of regret growing as x^p, ``(seeds,)``.

    It is the slope of a straight line fitted to log(regret) over log(x).

    Args:
        points: Runs by x, all on the same seeds.
    """
    regret = np.array([regret_by_seed(result) for result in points.values()])
    slopes: Array = np.polyfit(np.log(list(points)), np.log(regret), 1)[0]
    return slopes


def all_hold(statements: Iterable[Statement]) -> Statement:
    """Returns the joint verdict on statements.

    It is "does **not** hold" if some statement does not hold, else "undecided" if some statement is, else "holds".
    """
    found = set(statements)
    return _FAILS if _FAILS in found else "undecided" if "undecided" in found else "holds"


def all_at_most(ratios: Iterable[Ratio], bound: float = 1) -> Statement:
    """Returns the joint verdict on whether all ratios are at most ``bound``, by their intervals."""
    return all_hold(value.at_most(bound) for value in ratios)


def ordered(runs: Iterable[RunResult]) -> tuple[Statement, list[Ratio]]:
    """Returns the verdict on whether regret rises from each run to the next, and the ratios of their regrets.

    Args:
        runs: The runs in the order that a paper claims, least regret first.

    Returns:
        The verdict on the order, and for each run but the last its regret divided by that of the next run.
    """
    ratios = [ratio(before, after) for before, after in pairwise(runs)]
    return all_at_most(ratios), ratios


def lies_within(number: float, measure: Mean) -> str:
    """Returns a text that says whether a number lies within the interval of a measured mean or ratio."""
    if isnan(measure.low):
        return f"{number:g} has no interval to lie within"
    lies = "lies" if measure.holds(number) == "holds" else "does **not** lie"
    return f"{number:g} {lies} within the interval"


def about_intervals(count: int, over: str) -> str:
    """Returns the sentence of a page that explains its intervals, where every seed draws its own instance.

    Args:
        count: Number of seeds of each run.
        over: Plural noun for the seeds, such as ``trials``.
    """
    if count < FEWEST:
        return f"{count} {over} make no interval: ranges over them are given."
    return (
        f"± is Student's 95 % interval over {over}; brackets behind ratios are bootstrap intervals over {over} in "
        "pairs, nominally of 95 %; their actual coverage is "
        f"about {bootstrap_coverage(count):.0%} with {count} of them."
    )
