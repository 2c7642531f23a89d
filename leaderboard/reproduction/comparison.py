"""Comparison of a paper's statements with measurements: ratios of regret with their uncertainty, and verdicts.

An interval covers 95 %, so each of its ends is passed by chance in about one of forty runs. A verdict "holds" on a
whole chain is as safe as one on a single ratio, since every link has to hold; "does not hold" is not, since one false
link is enough.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Mean:
    """A mean with its interval, or with its range where there are too few values for one.

    Attributes:
        value: The mean.
        low: Lower end of the 95 % interval; NaN where there is none.
        high: Upper end, likewise.
        spec: How its numbers are written.
        least: The smallest value; NaN where the interval is what counts.
        most: The largest, likewise.
    """

    value: float
    low: float
    high: float
    spec: str = ".0f"
    least: float = nan
    most: float = nan

    def __str__(self) -> str:
        """Writes the mean and the half width of its interval, or the range of trials."""
        mean = format(self.value, self.spec)
        if isnan(self.least):
            return f"{mean} ± {(self.high - self.low) / 2:{self.spec}}"
        return f"{mean}, trials {self.least:{self.spec}} to {self.most:{self.spec}}"

    def numbers(self) -> dict[str, float]:
        """Returns value and interval, or range; see :class:`.page.Measure`."""
        if isnan(self.least):
            return {"value": self.value, "low": self.low, "high": self.high}
        return {"value": self.value, "least": self.least, "most": self.most}


@dataclass(frozen=True)
class Interval:
    """Where a number is expected.

    Attributes:
        low: Lower end.
        high: Upper end.
    """

    low: float
    high: float

    def __str__(self) -> str:
        """Writes both ends."""
        return f"[{self.low:.2f}, {self.high:.2f}]"

    def numbers(self) -> dict[str, float]:
        """Returns both ends; see :class:`.page.Measure`."""
        return {"low": self.low, "high": self.high}

    def holds(self, number: float) -> Statement:
        """Returns, as a verdict, whether a number lies within."""
        return holds_if(self.low <= number <= self.high)


@dataclass(frozen=True)
class Ratio:
    """Mean (or median) regret of one run over that of another, on the same instances with common random numbers.

    Attributes:
        value: The ratio.
        low: Lower end of the 95 % interval over seeds, instances held fixed; NaN where seeds are too few for one.
        high: Upper end, likewise.
        least: Smallest ratio of a single instance, or of a single seed where there is no interval.
        most: Largest ratio, likewise.
        instances: What these are called; empty where each seed has its own instance, and there is an interval.
    """

    value: float
    low: float
    high: float
    least: float
    most: float
    instances: str = ""

    def __str__(self) -> str:
        """Writes the ratio, its interval if there is one and, if there are several, the range of the instances."""
        text = f"{self.value:.3f}" + ("" if isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]")
        return f"{text}, {self.instances} {self.least:.2f} to {self.most:.2f}" if self.instances else text

    def numbers(self) -> dict[str, float]:
        """Returns value, interval if there is one and range; see :class:`.page.Measure`."""
        names = ("value", "least", "most") if isnan(self.low) else ("value", "low", "high", "least", "most")
        return {name: getattr(self, name) for name in names}

    def at_most(self, bound: float) -> Statement:
        """Returns, as a verdict, whether the ratio is at most ``bound``; undecided if the interval contains it."""
        if self.high <= bound:
            return "holds"
        return "does **not** hold" if self.low > bound else "undecided"

    def at_least(self, bound: float) -> Statement:
        """Returns, as a verdict, whether the ratio is at least ``bound``; undecided if the interval contains it."""
        if self.low >= bound:
            return "holds"
        return "does **not** hold" if self.high < bound else "undecided"


def regret_by_seed(result: RunResult, checkpoint: int = -1) -> Array:
    """Returns cumulative regret per agent, ``(seeds,)``."""
    means: Array = result.regret[checkpoint].mean(axis=1)
    return means


def ratio(
    numerator: RunResult, denominator: RunResult, checkpoint: int = -1, middle: Middle = "mean"
) -> Ratio:
    """Compares two runs over the same seeds.

    Args:
        numerator: The run above.
        denominator: The run below.
        checkpoint: Index of the round.
        middle: Of what the ratio is: seeds' mean, or their median.

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
    """Compares what two runs have, a value a seed, under the same seeds."""
    value, low, high = ratio_with_interval(above, below, np.zeros(above.size))
    return Ratio(value, low, high, value, value)


def elsewhere(numerator: RunResult, denominator: RunResult, checkpoint: int = -1) -> Interval:
    """Predicts with 95 % the ratio over as many other instances, drawn as these were; see :func:`ratio`.

    That is where the number of a paper is expected whose instances are not ours.
    """
    above, below = _paired(numerator, denominator, checkpoint)
    return Interval(*ratio_in_other_strata(above, below, strata_of_seeds(numerator)))


def instance_ratios(numerator: RunResult, denominator: RunResult, checkpoint: int = -1) -> Array:
    """Returns the ratio of each problem instance, ``(instances,)``; see :func:`ratio`."""
    above, below = _paired(numerator, denominator, checkpoint)
    strata = strata_of_seeds(numerator)
    return stratum_means(above, strata) / stratum_means(below, strata)


def strata_of_seeds(result: RunResult) -> Array:
    """Returns which of the problem instances each seed takes, ``(seeds,)``."""
    return np.arange(result.regret.shape[1]) % result.strata.count


def _paired(numerator: RunResult, denominator: RunResult, checkpoint: int) -> tuple[Array, Array]:
    above, below = regret_by_seed(numerator, checkpoint), regret_by_seed(denominator, checkpoint)
    if (below.size, denominator.strata) != (above.size, numerator.strata):
        raise ValueError(
            f"denominator has {below.size} seeds of {denominator.strata}; the numerator's {above.size} of "
            f"{numerator.strata} are required"
        )
    return above, below


def holds_if(condition: bool) -> Statement:
    """Returns the statement that something holds, or that it does not."""
    return "holds" if condition else "does **not** hold"


def over(above: Mapping[Any, RunResult], below: RunResult | Mapping[Any, RunResult]) -> dict[Any, Ratio]:
    """Returns ratios by x.

    Args:
        above: Runs by x.
        below: What they are compared with: one run, or one for each x.
    """
    return {x: ratio(run, below[x] if isinstance(below, Mapping) else below) for x, run in above.items()}


def falls(points: Mapping[float, RunResult]) -> tuple[Statement, list[Ratio]]:
    """Returns the verdict on whether regret falls at every step with x, and the ratios; see :func:`ordered`."""
    return ordered([points[x] for x in sorted(points, reverse=True)])


def all_hold(statements: Iterable[Statement]) -> Statement:
    """Joins statements: all of them hold, or one does not, or it is undecided."""
    found = set(statements)
    for statement in ("does **not** hold", "undecided"):
        if statement in found:
            return statement
    return "holds"


def all_at_most(ratios: Iterable[Ratio], bound: float = 1) -> Statement:
    """Returns, as a verdict, whether all ratios are at most a bound."""
    return all_hold(value.at_most(bound) for value in ratios)


def ordered(runs: Iterable[RunResult], checkpoint: int = -1) -> tuple[Statement, list[Ratio]]:
    """Returns the verdict on whether regret rises from each run to the next, and the ratios.

    Args:
        runs: In the order that is claimed, least regret first.
        checkpoint: Index of the round.

    Returns:
        Whether the order holds, and the ratio of each run but the last to the one that follows it.
    """
    ratios = [ratio(before, after, checkpoint) for before, after in pairwise(runs)]
    return all_hold(link.at_most(1) for link in ratios), ratios


def lies_within(number: float, measure: Mean | Ratio) -> str:
    """Returns, as a verdict, whether a number lies within a measure's interval."""
    if isnan(measure.low):
        return f"{number:g} has no interval to lie within"
    lies = "lies" if measure.low <= number <= measure.high else "does **not** lie"
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
