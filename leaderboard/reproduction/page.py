"""What reports write: Markdown, rows of a CSV file and the curves of a picture."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.runs import Result
from fedbandit_envs.leaderboard.statistics import mean_and_half_width

COLUMNS = ("panel", "name", "x", "value", "low", "high", "least", "most")
"""Of the CSV file."""


@dataclass
class Section:
    """One panel's part of a page.

    Attributes:
        panel: Name of the panel.
        text: Lines of Markdown.
        rows: Rows of the CSV file, by :data:`COLUMNS`.
        curves: What to draw, by name: x, y and the error bars' lengths, one array or a pair.
    """

    panel: str
    text: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    curves: dict[str, tuple[Any, Any, Any]] = field(default_factory=dict)

    def table(self, *header: str) -> Callable[..., None]:
        """Starts a Markdown table; the function returned adds a row."""
        self.text += ["", f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
        return lambda *cells: self.text.append(f"| {' | '.join(map(str, cells))} |")

    def add(self, name: str, x: Any, value: Ratio) -> None:
        """Adds a ratio to the CSV rows."""
        known = {"panel": self.panel, "name": name, "x": x, **vars(value)}
        self.rows.append({column: known[column] for column in COLUMNS})

    def draw_regret(self, name: str, result: Result) -> None:
        """Draws regret per agent over rounds, with the 95 % interval over seeds."""
        mean, half = mean_and_half_width(result.regret.mean(axis=2))
        self.curves[name] = (result.rounds, mean, half)

    def draw_points(self, name: str, points: Mapping[float, Result]) -> None:
        """Draws regret per agent at the horizon over some quantity, with the 95 % interval over seeds."""
        at_end = [mean_and_half_width(regret_by_seed(result)[np.newaxis]) for result in points.values()]
        self.curves[name] = (list(points), [float(m[0]) for m, _ in at_end], [float(h[0]) for _, h in at_end])

    def draw_ratios(self, name: str, points: Mapping[float, Ratio]) -> None:
        """Draws ratios over some quantity with their intervals, and adds them to the CSV rows."""
        for x, value in points.items():
            self.add(name, x, value)
        values = [value.value for value in points.values()]
        spread = np.array([[p.value - p.low, p.high - p.value] for p in points.values()]).T
        self.curves[name] = (list(points), values, spread)

    def claims(self, claims: Iterable[Mapping[str, Any]]) -> None:
        """Writes a table of privacy claims, see :attr:`Result.claims`."""
        row = self.table("adjacency", "composition", "epsilon", "delta", "remark")
        for claim in claims:
            epsilon = "-" if claim["epsilon"] is None else f"{claim['epsilon']:.3f}"
            row(claim["adjacency"], claim["composition"], epsilon, f"{claim['delta']:.3g}", claim["reason"])


def regret_text(result: Result) -> str:
    """Writes cumulative regret per agent at the horizon with the 95 % interval over seeds."""
    mean, half = mean_and_half_width(regret_by_seed(result)[np.newaxis])
    return f"{mean[0]:.0f} ± {half[0]:.0f}"
