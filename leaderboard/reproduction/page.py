"""What reports write: Markdown, rows of a CSV file and the curves of a picture."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, regret_by_seed, strata_of_seeds
from fedbandit_envs.leaderboard.statistics import mean_and_half_width
from fedbandit_envs.leaderboard.sweep.runs import Result

COLUMNS = ("panel", "name", "quantity", "x", "value", "low", "high", "least", "most", "printed")
"""Of the CSV file.

A row is a ratio (``quantity`` "ratio"), a point of a curve ("drawn"), what a sentence says ("in the text") or a cell
of a table, whose ``name`` is the first cell of its line and whose ``quantity`` is the head of its column. ``printed``
is what the page says there, letter by letter.
"""


@runtime_checkable
class Measure(Protocol):
    """A number with its uncertainty, which writes itself."""

    def numbers(self) -> Mapping[str, float]:
        """Returns its numbers, by columns of :data:`COLUMNS`."""


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
        """Starts a Markdown table; the function returned adds a line to it, and what it prints to the CSV rows."""
        self.text += ["", f"| {' | '.join(header)} |", "|" + "---|" * len(header)]

        def add_line(*cells: Any) -> None:
            self.text.append(f"| {' | '.join(map(str, cells))} |")
            for column, cell in zip(header[1:], cells[1:], strict=True):
                if any(letter.isdigit() for letter in str(cell)):
                    self._record(str(cells[0]), column, "", cell, str(cell))

        return add_line

    def say(self, name: str, cell: Any) -> str:
        """Returns what a sentence is to say, and adds it to the CSV rows.

        Args:
            name: What it is.
            cell: A measure, or a text.
        """
        self._record(name, "in the text", "", cell, str(cell))
        return str(cell)

    def add(self, name: str, x: Any, value: Ratio) -> None:
        """Adds a ratio that no table prints to the CSV rows."""
        self._record(name, "ratio", x, value)

    def draw(self, name: str, x: Any, y: Any, error: Any) -> None:
        """Draws a curve.

        Args:
            name: In the legend.
            x: Where.
            y: The points, ``(points,)``.
            error: The error bars' lengths, ``(points,)``, or ``(2, points)``: below and above.
        """
        self.curves[name] = (x, y, error)

    def record_curves(self) -> None:
        """Adds the points of all curves to the CSV rows, but for ratios that are there."""
        known = {(row["name"], row["x"]) for row in self.rows if row["quantity"] == "ratio"}
        for name, (x, y, error) in self.curves.items():
            below, above = np.broadcast_to(error, (2, len(y)))
            for where, value, down, up in zip(x, y, below, above, strict=True):
                if (name, where) not in known:
                    cell = value if np.isnan(down) else Mean(value, value - down, value + up)
                    self._record(name, "drawn", where, cell)

    def draw_regret(self, name: str, result: Result) -> None:
        """Draws regret per agent over rounds, with the 95 % interval over seeds, instances held fixed."""
        mean, half = mean_and_half_width(result.regret.mean(axis=2), strata=strata_of_seeds(result))
        self.draw(name, result.rounds, mean, half)

    def draw_points(self, name: str, points: Mapping[float, Result]) -> None:
        """Draws regret per agent at the horizon over some quantity, with its interval; see :func:`regret_text`."""
        self.draw_means(name, {x: regret_text(result) for x, result in points.items()})

    def draw_means(self, name: str, points: Mapping[float, Mean]) -> None:
        """Draws means over some quantity with their intervals."""
        means = points.values()
        self.draw(
            name, list(points), [mean.value for mean in means], [mean.high - mean.value for mean in means]
        )

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

    def _record(self, name: str, quantity: str, x: Any, cell: Any, printed: str = "") -> None:
        numbers: Mapping[str, float] = {}
        if isinstance(cell, Measure):
            numbers = cell.numbers()
        elif isinstance(cell, Real):
            numbers = {"value": float(cell)}
        # Ten digits are more than any of them deserves.
        rounded = {column: float(f"{number:.10g}") for column, number in numbers.items()}
        known = {
            "panel": self.panel,
            "name": name,
            "quantity": quantity,
            "x": x,
            "printed": printed,
            **rounded,
        }
        self.rows.append({column: known.get(column, "") for column in COLUMNS})


def regret_text(result: Result) -> Mean:
    """Returns cumulative regret per agent at the horizon with the 95 % interval over seeds, instances held fixed."""
    return over_seeds(regret_by_seed(result), strata=strata_of_seeds(result))


def over_seeds(values: Array, spec: str = ".0f", strata: Array | None = None) -> Mean:
    """Returns the mean of one value a seed with its 95 % interval, or their range where they are too few for one.

    Args:
        values: The values, ``(seeds,)``.
        spec: How to write numbers.
        strata: Stratum of each seed, which the interval holds fixed.
    """
    mean, half = (float(part) for part in mean_and_half_width(values, strata=strata))
    if np.isnan(half):
        return Mean(mean, half, half, spec, float(values.min()), float(values.max()))
    return Mean(mean, mean - half, mean + half, spec)
