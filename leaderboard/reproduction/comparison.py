"""Comparison of a paper's statements with measurements: ratios of regret with their uncertainty, and verdicts.

An interval covers 95 %, so each of its ends is passed by chance in about one of forty runs. A verdict "holds" on a
whole chain is as safe as one on a single ratio, since every link has to hold; "does not hold" is not, since one false
link is enough.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan, nan
from typing import Any, Literal

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.leaderboard.runs.statistics import (
    FEWEST,
    MIDDLES,
    Middle,
    bootstrap_coverage,
    ratio_in_other_strata,
    ratio_with_interval,
    stratum_means,
)

Statement = Literal["holds", "does **not** hold", "undecided"]
_FAILS: Statement = "does **not** hold"


@dataclass(frozen=True)
class Mean:
    """A mean with its 95 % interval, or with the range of the values where they are too few for an interval.

    Attributes:
        value: The mean.
        low: Lower end of the interval; NaN where there is none.
        high: Upper end, likewise.
        least: The smallest value; NaN where there is an interval.
        most: The largest value, likewise.
        spec: Format of its numbers as text.
    """

    value: float
    low: float
    high: float
    least: float = nan
    most: float = nan
    spec: str = field(default=".0f", kw_only=True)

    def __str__(self) -> str:
        """Returns the mean and the half width of its interval, or the range, as text."""
        mean = format(self.value, self.spec)
        if isnan(self.least):
            return f"{mean} ± {(self.high - self.low) / 2:{self.spec}}"
        return f"{mean}, trials {self.least:{self.spec}} to {self.most:{self.spec}}"

    def numbers(self) -> dict[str, float]:
        """Returns the numbers that are known, by their columns of the page's CSV file."""
        known = {name: getattr(self, name) for name in ("value", "low", "high", "least", "most")}
        return {name: number for name, number in known.items() if not isnan(number)}

    def holds(self, number: float) -> Statement:
        """Returns the verdict on whether a number lies within the interval."""
        return holds_if(self.low <= number <= self.high)

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
        value: The ratio; NaN where only an interval is predicted.
        low: Lower end of the 95 % interval over seeds, instances held fixed; NaN where seeds are too few for one.
        high: Upper end, likewise.
        least: Smallest ratio of a single instance, or of a single seed where there is no interval.
        most: Largest ratio, likewise.
        instances: Plural noun for these instances or seeds; empty if the range is not to be written.
    """

    instances: str = ""

    def __str__(self) -> str:
        """Returns the ratio, its interval if there is one and, if there are several, the range of the instances."""
        if isnan(self.value):
            return f"[{self.low:.2f}, {self.high:.2f}]"
        text = f"{self.value:.3f}" + ("" if isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]")
        return f"{text}, {self.instances} {self.least:.2f} to {self.most:.2f}" if self.instances else text


def regret_by_seed(result: RunResult, checkpoint: int = -1) -> Array:
    """Returns cumulative regret per agent, ``(seeds,)``."""
    means: Array = result.regret[checkpoint].mean(axis=1)
    return means


def ratio(
    numerator: RunResult, denominator: RunResult, checkpoint: int = -1, middle: Middle = "mean"
) -> Ratio:
    """Returns the regret of one run divided by that of another over the same seeds.

    Args:
        numerator: The run whose regret is divided.
        denominator: The run by whose regret it is divided.
        checkpoint: Index of the round.
        middle: Average over seeds of which the ratio is taken.

    Raises:
        ValueError: The runs have different numbers of seeds, or their seeds take different instances in turn.
    """
    above, below = _paired(numerator, denominator, checkpoint)
    strata, instances = strata_of_seeds(numerator), numerator.strata
    # Without an interval single seeds are all that can be shown.
    apart, names = (strata, instances.name) if above.size >= FEWEST else (np.arange(above.size), "trials")
    of = MIDDLES[middle]
    single = [float(of(above[apart == i]) / of(below[apart == i])) for i in np.unique(apart)]
    name = names if len(single) > 1 else ""
    interval = ratio_with_interval(above, below, strata, middle=middle)
    return Ratio(*interval, min(single), max(single), name)


def compare(above: Array, below: Array) -> Ratio:
    """Returns the ratio of the means of two arrays with a value for each seed, ``(seeds,)``, the same seeds in both."""
    value, low, high = ratio_with_interval(above, below, np.zeros(above.size))
    return Ratio(value, low, high, value, value)


def elsewhere(numerator: RunResult, denominator: RunResult) -> Ratio:
    """Returns a 95 % prediction interval of the ratio over as many other instances, drawn as these were.

    The number of a paper whose instances are not ours is expected there. The arguments are those of :func:`ratio`.
    """
    above, below = _paired(numerator, denominator)
    return Ratio(nan, *ratio_in_other_strata(above, below, strata_of_seeds(numerator)))


def instance_ratios(numerator: RunResult, denominator: RunResult) -> Array:
    """Returns the ratio of each problem instance, ``(instances,)``, for the arguments of :func:`ratio`."""
    above, below = _paired(numerator, denominator)
    strata = strata_of_seeds(numerator)
    return stratum_means(above, strata) / stratum_means(below, strata)


def strata_of_seeds(result: RunResult) -> Array:
    """Returns which of the problem instances each seed takes, ``(seeds,)``."""
    return np.arange(result.regret.shape[1]) % result.strata.count


def _paired(numerator: RunResult, denominator: RunResult, checkpoint: int = -1) -> tuple[Array, Array]:
    above, below = regret_by_seed(numerator, checkpoint), regret_by_seed(denominator, checkpoint)
    if (below.size, denominator.strata) != (above.size, numerator.strata):
        raise ValueError(
            f"denominator has {below.size} seeds of {denominator.strata}; the numerator's {above.size} of "
            f"{numerator.strata} are required"
        )
    return above, below


def holds_if(condition: bool) -> Statement:
    """Returns the verdict "holds" or "does **not** hold"."""
    return "holds" if condition else _FAILS


def over(above: Mapping[Any, RunResult], below: RunResult | Mapping[Any, RunResult]) -> dict[Any, Ratio]:
    """Returns the ratios of runs' regret to that of other runs, by x.

    Args:
        above: Runs by x.
        below: One run with which all are compared, or one for each x.
    """
    return {x: ratio(run, below[x] if isinstance(below, Mapping) else below) for x, run in above.items()}


def falls(points: Mapping[float, RunResult]) -> tuple[Statement, list[Ratio]]:
    """Returns the verdict on whether regret falls from each x to the next, and the ratios of neighbours' regret."""
    return ordered([points[x] for x in sorted(points, reverse=True)])


def all_hold(statements: Iterable[Statement]) -> Statement:
    """Returns the joint verdict: that all statements hold, that one does not, or that it is undecided."""
    found = set(statements)
    return _FAILS if _FAILS in found else "undecided" if "undecided" in found else "holds"


def all_at_most(ratios: Iterable[Ratio], bound: float = 1) -> Statement:
    """Returns the verdict on whether all ratios are at most a bound."""
    return all_hold(value.at_most(bound) for value in ratios)


def ordered(runs: Iterable[RunResult]) -> tuple[Statement, list[Ratio]]:
    """Returns the verdict on whether regret rises from each run to the next, and the ratios.

    Args:
        runs: In the order that is claimed, least regret first.

    Returns:
        Whether the order holds, and the ratio of each run but the last to the one that follows it.
    """
    ratios = [ratio(before, after) for before, after in pairwise(runs)]
    return all_at_most(ratios), ratios


def lies_within(number: float, measure: Mean) -> str:
    """Returns the verdict, as text, on whether a number lies within a measure's interval."""
    if isnan(measure.low):
        return f"{number:g} has no interval to lie within"
    lies = "lies" if measure.holds(number) == "holds" else "does **not** lie"
    return f"{number:g} {lies} within the interval"


def about_intervals(count: int, over: str) -> str:
    """Returns the sentence of a page that explains its intervals, where every seed draws its own instance.

    Args:
        count: Number of seeds.
        over: Name of the seeds, in the plural.
    """
    if count < FEWEST:
        return f"{count} {over} make no interval: ranges over them are given."
    return (
        f"± is Student's 95 % interval over {over}; brackets behind ratios are bootstrap intervals over {over} in "
        f"pairs, meant to hold 95 % and holding about {bootstrap_coverage(count):.0%} with {count} of them."
    )
