"""Functions for page templates: tables, numbers and curves, all of which are written to the CSV file as well."""

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from numbers import Real
from pkgutil import iter_modules
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Claim
from fedbandit_envs.leaderboard.reproduction import comparison
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, regret_by_seed, strata_of_seeds
from fedbandit_envs.leaderboard.reproduction.experiment import Experiment, Plan
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs import statistics
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.leaderboard.runs.statistics import mean_and_half_width

COLUMNS = ("panel", "name", "quantity", "x", "value", "low", "high", "least", "most", "printed")
"""Columns of the CSV file.

A row is a ratio (``quantity`` is "ratio"), a point of a curve ("drawn"), a value in a sentence ("in the text") or a
cell of a table. Of a cell, ``name`` is the first cell of its line and ``quantity`` the head of its column. ``printed``
is the text on the page, letter by letter.
"""

Row = Mapping[str, Any]
Points = Mapping[Any, Any] | Sequence[tuple[Any, Any]]


class Section:
    """The section of one panel: functions for its template, and the CSV rows and curves that their calls leave.

    Attributes:
        rows: Rows of the CSV file, by :data:`COLUMNS`.
        curves: Curves of the picture by name: x, y and the lengths of the error bars below and above.
        beside: Curves that are dotted in the colour of another curve: the other's name by the dotted one's.
    """

    def __init__(self, experiment: Experiment, plan: Plan) -> None:
        """Starts an empty section of an experiment's page.

        Args:
            experiment: The experiment.
            plan: The panel and the other settings that the user has chosen.
        """
        self._experiment = experiment
        self._plan = plan
        self.rows: list[dict[str, Any]] = []
        self.curves: dict[str, tuple[list[Any], list[float], Array]] = {}
        self.beside: dict[str, str] = {}

    def render(self, template: str, **context: Any) -> str:
        """Returns the text that a template of the experiment's folder makes.

        Templates can use the public methods of this class; the public names of the folder's modules ``analysis`` and
        ``experiments``, of this module, of :mod:`.comparison` and of
        :mod:`~fedbandit_envs.leaderboard.runs.statistics`; the folder's modules by their names; ``experiment``,
        ``plan``, ``scale``, ``panel`` and ``mode``; and the filter ``fmt``, which writes a number by a format.

        Args:
            template: Name of the template.
            **context: Further names, such as ``runs`` for the results of the panel.
        """
        from jinja2 import Environment, PackageLoader, StrictUndefined

        package = self._experiment.package
        templates = Environment(
            loader=PackageLoader(package.__name__, ""),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # Markdown
            extensions=["jinja2.ext.do"],
        )
        templates.filters["fmt"] = format
        modules = {
            found.name: import_module(f"{package.__name__}.{found.name}")
            for found in iter_modules(package.__path__)
        }
        sources = [comparison, statistics, import_module(__name__)]
        sources += [modules["experiments"], modules["analysis"]]
        known = {name: value for source in sources for name, value in vars(source).items() if name[0] != "_"}
        known |= {**modules, "experiment": self._experiment, "plan": self._plan, **self._plan._asdict()}
        known |= {name: getattr(self, name) for name in vars(Section) if name[0] != "_"}
        text = templates.get_template(template).render({**known, **context})
        # Calls that return no text leave empty lines.
        return re.sub(r"\n{3,}", "\n\n", text).strip()

    def table(self, lines: Iterable[Row]) -> str:
        """Returns a Markdown table, and adds its cells that hold digits to the CSV rows.

        Args:
            lines: One mapping a line: the heads of all columns, in order, and the cells below them.
        """
        lines = list(lines)
        text = [f"| {' | '.join(lines[0])} |", "|" + "---|" * len(lines[0])]
        for line in lines:
            first, *others = line.items()
            text.append(f"| {' | '.join(str(cell) for cell in line.values())} |")
            for column, cell in others:
                if any(letter.isdigit() for letter in str(cell)):
                    self._record(str(first[1]), column, "", cell, str(cell))
        return "\n".join(text)

    def sentences(self, *said: tuple[str, Any, str]) -> str:
        """Returns the table of a paper's sentences.

        Args:
            *said: For each line, the paper's sentence letter by letter; what is measured here; and the verdict.
        """
        return self.table(
            {"the paper says": f'"{sentence}"', "here": here, "verdict": verdict}
            for sentence, here, verdict in said
        )

    def say(self, name: str, cell: Any) -> str:
        """Returns a measured value as text for a sentence of the page, and adds it to the CSV rows.

        Args:
            name: Name of the value in the CSV file.
            cell: A measure, or a text.
        """
        self._record(name, "in the text", "", cell, str(cell))
        return str(cell)

    def record(self, name: str, ratios: Mapping[Any, Ratio]) -> str:
        """Adds ratios that no table prints to the CSV rows, by x; returns no text."""
        for x, value in ratios.items():
            self._record(name, "ratio", x, value)
        return ""

    def draw(self, curves: Mapping[str, Points], beside: Mapping[str, str] = {}) -> str:
        """Draws curves, and adds their points to the CSV rows; returns no text.

        Args:
            curves: By their names in the legend, points by x, or pairs of x and point where an x comes several times.
                A point is a mean or a ratio, which is drawn with its interval, or a number.
            beside: Curves to be dotted in the colour of another curve: the other's name by the dotted one's.
        """
        self.beside |= beside
        for name, given in curves.items():
            points = list(given.items()) if isinstance(given, Mapping) else given
            known = {row["x"] for row in self.rows if (row["name"], row["quantity"]) == (name, "ratio")}
            bars = []
            for x, point in points:
                mean = point if isinstance(point, Mean) else Mean(point, point, point)
                bars.append((mean.value, mean.value - mean.low, mean.high - mean.value))
                if x not in known and isinstance(mean, Ratio):
                    self._record(name, "ratio", x, mean)
                elif x not in known:
                    # The range of too few trials is not drawn.
                    self._record(name, "drawn", x, mean.value if np.isnan(mean.low) else mean)
            values, below, above = zip(*bars, strict=True)
            self.curves[name] = ([x for x, _ in points], list(values), np.array([below, above]))
        return ""

    def claims(self, claims: Iterable[Claim]) -> str:
        """Returns the table of privacy claims, such as those of :attr:`RunResult.claims`."""
        return self.table(
            {
                "adjacency": claim.adjacency,
                "composition": claim.composition,
                "epsilon": "-" if claim.epsilon is None else f"{claim.epsilon:.3f}",
                "delta": f"{claim.delta:.3g}",
                "remark": claim.reason,
            }
            for claim in claims
        )

    def _record(self, name: str, quantity: str, x: Any, cell: Any, printed: str = "") -> None:
        numbers = {"value": float(cell)} if isinstance(cell, Real) else {}
        if isinstance(cell, Mean):
            numbers = cell.numbers()
        # Ten digits are more than any of them deserves.
        rounded = {column: float(f"{number:.10g}") for column, number in numbers.items()}
        known = {"panel": self._plan.panel, "name": name, "quantity": quantity, "x": x, "printed": printed}
        self.rows.append({column: (known | rounded).get(column, "") for column in COLUMNS})


def over_rounds(result: RunResult) -> dict[int, Mean]:
    """Returns regret per agent by round, with the 95 % interval over seeds, instances held fixed."""
    return means(result.rounds, result.regret.mean(axis=2), strata_of_seeds(result))


def all_over_rounds(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns the curve of regret over rounds of every line."""
    return {row.labels["line"]: over_rounds(row.result) for row in runs.rows}


def means(x: Sequence[Any] | Array, values: Array, strata: Array | None = None) -> dict[Any, Mean]:
    """Returns means over seeds with their 95 % intervals, by x.

    Args:
        x: Values of x, ``(points,)``.
        values: One value for each seed, ``(points, seeds)``.
        strata: Stratum of each seed, which the intervals hold fixed.
    """
    mean, half = mean_and_half_width(values, strata=strata)
    return {at: Mean(m, m - h, m + h) for at, m, h in zip(x, mean, half, strict=True)}


def swept(
    runs: PanelRuns, column: str, lines: Iterable[str] = (), **labels: Any
) -> dict[str, dict[Any, Mean]]:
    """Returns curves of :func:`final_regret` over a column, by line.

    Args:
        runs: The results.
        column: Label that is on the x axis.
        lines: Lines of which curves are returned; all by default.
        **labels: Other labels that the runs have to have.
    """
    return {
        line: {x: final_regret(result) for x, result in runs.by(column, line=line, **labels).items()}
        for line in lines or runs.values("line")
    }


def final_regret(result: RunResult) -> Mean:
    """Returns cumulative regret per agent at the horizon with the 95 % interval over seeds, instances held fixed."""
    return over_seeds(regret_by_seed(result), strata=strata_of_seeds(result))


def over_seeds(values: Array, spec: str = ".0f", strata: Array | None = None) -> Mean:
    """Returns the mean over seeds with its 95 % interval, or with the range of values where seeds are too few for one.

    Args:
        values: One value for each seed, ``(seeds,)``.
        spec: Format of its numbers as text.
        strata: Stratum of each seed, which the interval holds fixed.
    """
    mean, half = (float(part) for part in mean_and_half_width(values, strata=strata))
    least, most = (float(values.min()), float(values.max())) if np.isnan(half) else (np.nan, np.nan)
    return Mean(mean, mean - half, mean + half, least, most, spec=spec)
