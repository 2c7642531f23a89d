"""A figure of the paper's beside ours: ratios of regret with their uncertainty, and a verdict."""

from dataclasses import dataclass

import numpy as np

from fedbandit_envs.federation import Array
from fedbandit_envs.leaderboard.reproduction.cells import Result
from fedbandit_envs.leaderboard.statistics import ratio_with_interval


@dataclass(frozen=True)
class Ratio:
    """Mean regret of one algorithm over that of another, on the same markets under the same luck.

    Attributes:
        value: The ratio.
        low: Lower end of the 95 % interval over runs, markets held fixed.
        high: Upper end.
        least: Smallest ratio of a single market.
        most: Largest ratio of a single market.
    """

    value: float
    low: float
    high: float
    least: float
    most: float

    def __str__(self) -> str:
        """Writes the ratio, its interval and the range of the markets."""
        return (
            f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}], markets {self.least:.2f} to {self.most:.2f}"
        )

    def verdict(self, paper: float) -> str:
        """Says whether the paper's number agrees."""
        if self.low <= paper <= self.high:
            return "agrees"
        if self.least <= paper <= self.most:
            return "outside the interval, within the markets' range"
        return "**differs**"


def regret_by_seed(result: Result, checkpoint: int = -1) -> Array:
    """Returns cumulative regret per agent, ``(seeds,)``."""
    means: Array = result.regret[checkpoint].mean(axis=1)
    return means


def ratio(numerator: Result, denominator: Result, markets: int, checkpoint: int = -1) -> Ratio:
    """Compares two runs over the same seeds.

    Args:
        numerator: The run above.
        denominator: The run below.
        markets: Number of markets; seeds take them in turn.
        checkpoint: Index of the round.
    """
    above, below = regret_by_seed(numerator, checkpoint), regret_by_seed(denominator, checkpoint)
    strata = np.arange(above.size) % markets
    single = [above[strata == market].mean() / below[strata == market].mean() for market in range(markets)]
    return Ratio(*ratio_with_interval(above, below, strata), min(single), max(single))
