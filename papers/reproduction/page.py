"""The page, CSV file and picture of an experiment, and the functions by which page templates make tables and curves."""

import csv
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.experiments import statistics
from fedbandit_envs.experiments.plots import panels_png
from fedbandit_envs.experiments.store import Cell, Store
from fedbandit_envs.papers.reproduction import comparison
from fedbandit_envs.papers.reproduction.comparison import ENOUGH, Mean, Ratio, over_rounds
from fedbandit_envs.papers.reproduction.experiment import Experiment, LabelledResult, PanelRuns, Plan

COLUMNS = ("panel", "name", "quantity", "x", "value", "low", "high", "instances", "printed")
"""Columns of the CSV file.

A row is a ratio (``quantity`` is "ratio"), a point of a curve ("drawn"), a value in a sentence ("in the text") or a
cell of a table. For a cell, ``name`` is the first cell of its line and ``quantity`` the head of its column. ``x`` is
the quantity that is varied. ``printed`` is the text as it is on the page.
"""

Row = Mapping[str, Any]
Table = Iterable[Row]
Curves = Mapping[str, Mapping[Any, Any]]
Points = Mapping[Any, Any] | Sequence[tuple[Any, Any]]


class Section:
    """The section of a page that reports on one panel.

    Its methods are called by the panel's template; they return text, and collect rows of the CSV file and curves.

    Attributes:
        rows: Rows of the CSV file so far, each a mapping with the keys :data:`COLUMNS`.
        curves: Curves of the picture so far, by name: x, y and the lengths of the error bars below and above.
        beside: Names of curves that are drawn dotted, each with the name of the curve whose colour it has.
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
        """Returns the Markdown text that a template in the experiment's folder makes.

        Templates can use the public methods of this class; the public names of the folder's modules ``analysis`` and
        ``experiments``, of this module, of :mod:`.comparison` and of
        :mod:`~fedbandit_envs.experiments.statistics`; the folder's modules by their names; ``experiment``,
        ``plan``, ``scale``, ``panel`` and ``mode``; and the filter ``fmt``, which writes a number by a format.

        Args:
            template: File name of the template.
            **context: Further values that the template can use, such as ``runs``, the results of the panel.
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
        modules = {name: import_module(f"{package.__name__}.{name}") for name in ("experiments", "analysis")}
        sources = [comparison, statistics, import_module(__name__), *modules.values()]
        known = {name: value for source in sources for name, value in vars(source).items() if name[0] != "_"}
        known |= {**modules, "experiment": self._experiment, "plan": self._plan, **self._plan._asdict()}
        known |= {name: getattr(self, name) for name in vars(Section) if name[0] != "_"}
        text = templates.get_template(template).render({**known, **context})
        # Calls that return no text leave empty lines, which are removed here.
        return re.sub(r"\n{3,}", "\n\n", text).strip()

    def table(self, lines: Iterable[Row]) -> str:
        """Returns a Markdown table, and adds its cells that contain digits to the CSV rows.

        Args:
            lines: The lines of the table, each a mapping from the heads of all columns, in order, to the line's cells.
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
        """Returns a Markdown table that compares a paper's sentences with this project's measurements.

        Args:
            *said: For each line of the table, the paper's sentence letter by letter, the measurement, and the verdict.
        """
        return self.table(
            {"the paper says": f'"{sentence}"', "here": here, "verdict": verdict}
            for sentence, here, verdict in said
        )

    def say(self, name: str, cell: Any) -> str:
        """Returns a measured value as text for a sentence of the page, and adds it to the CSV rows.

        Args:
            name: Name of the value in the CSV file.
            cell: The value: a mean or ratio (:class:`.comparison.Mean`), a number, or a text.
        """
        self._record(name, "in the text", "", cell, str(cell))
        return str(cell)

    def record(self, curves: Curves, name: str = "{}") -> str:
        """Adds ratios that no table has to the CSV rows; returns an empty text.

        Args:
            curves: Ratios by the name of their curve and by x.
            name: Format of the name in the CSV file, such as ``"{} / silent"``.
        """
        for line, ratios in curves.items():
            for x, value in ratios.items():
                self._record(name.format(line), "ratio", x, value)
        return ""

    def draw(self, curves: Mapping[str, Points], beside: Mapping[str, str] = {}) -> str:
        """Adds curves to the picture, and their points to the CSV rows; returns an empty text.

        Args:
            curves: Points of each curve by its name in the legend. Points are a mapping from x to y, or pairs of x and
                y if several have the same x. A y is a number, or a mean or ratio, which is drawn with its interval.
            beside: Names of curves to be drawn dotted, each with the name of the curve whose colour it gets.
        """
        self.beside |= beside
        for name, given in curves.items():
            points = list(given.items()) if isinstance(given, Mapping) else given
            known = {row["x"] for row in self.rows if (row["name"], row["quantity"]) == (name, "ratio")}
            bars = []
            for x, point in points:
                mean = point if isinstance(point, Mean) else Mean(point, point, point, 1)
                bars.append((mean.value, mean.value - mean.low, mean.high - mean.value))
                if x not in known and isinstance(mean, Ratio):
                    self._record(name, "ratio", x, mean)
                elif x not in known:
                    self._record(name, "drawn", x, point)
            values, below, above = zip(*bars, strict=True)
            self.curves[name] = ([x for x, _ in points], list(values), np.array([below, above]))
        return ""

    def claims(self, claims: Iterable[Claim]) -> str:
        """Returns a Markdown table with a line for each privacy claim, such as those of :attr:`RunResult.claims`."""
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
        known = {"panel": self._plan.panel, "name": name, "quantity": quantity, "x": x, "printed": printed}
        self.rows.append({column: (known | numbers).get(column, "") for column in COLUMNS})


def all_over_rounds(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns for each algorithm (label ``line``) the curve of cumulative regret per agent over rounds."""
    return {row.labels["line"]: over_rounds(row.result) for row in runs.rows}


def each(lines: Mapping[str, Mapping[Any, Any]], measure: Callable[[Any], Any]) -> Curves:
    """Returns the value of a function of each result, by name and x.

    Args:
        lines: Results by name and x, as :meth:`PanelRuns.lines` returns them.
        measure: The function of a result.
    """
    return {name: {x: measure(result) for x, result in own.items()} for name, own in lines.items()}


def by_x(curves: Curves, head: str, label: str, names: Iterable[str] = ()) -> list[Row]:
    """Returns the lines of a table that has a line for each x and a column for each curve.

    Args:
        curves: Cells by the name of the curve and by x; all curves have the same x.
        head: Head of the first column, which names x.
        label: Format of the first column's cells, such as ``"{:g} agents"``.
        names: Names of the curves that become columns, in order; all by default.
    """
    columns = {name: curves[name] for name in names or curves}
    xs = next(iter(columns.values()))
    return [{head: label.format(x)} | {name: own[x] for name, own in columns.items()} for x in xs]


def by_line(curves: Curves, head: str, label: str, meanings: Mapping[str, str] = {}) -> list[Row]:
    """Returns the lines of a table that has a line for each curve and a column for each x.

    Args:
        curves: Cells by the name of the curve and by x.
        head: Head of the first column, which has the names of the curves.
        label: Format of the heads of the other columns, such as ``"{:g} agents"``.
        meanings: Descriptions of the curves by name, for a second column; there is no such column if it is empty.
    """
    return [
        {head: name}
        | ({"what it does": meanings[name]} if meanings else {})
        | {label.format(x): cell for x, cell in own.items()}
        for name, own in curves.items()
    ]


class Reproduction:
    """One experiment at one scale, whose results are kept in a folder.

    Attributes:
        cells: The runs of all panels that were chosen.
        folder: Folder of the runs' results, which are stored in shards (a file for a part of a run's seeds).
    """

    def __init__(
        self,
        name: str,
        experiment: Experiment,
        out: Path,
        *,
        scale: str,
        panel: str = "all",
        mode: str = "default",
        rounds: int | None = None,
        trials: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Determines the runs that are needed; nothing is played yet.

        Args:
            name: Name of the experiment; names of the files that are written begin with it.
            experiment: The experiment.
            out: Folder of the files that are written; shards go to ``out/shards``, which all experiments share.
            scale: Name of one of the experiment's scales.
            panel: Name of one of the experiment's panels, or ``all``.
            mode: Name of one of the experiment's modes.
            rounds: Horizon; None for the scale's.
            trials: Number of runs of each problem instance; None for the scale's.
            data: The user's own data, for panels that need them; None leaves these panels out.

        Raises:
            ImportError: A library that reads the data is missing.
            OSError: The data cannot be read.
            TypeError: The data are described by wrong arguments.
            ValueError: A name is unknown, a number out of range, data are malformed, missing or not needed.
        """
        require_choice(f"scale of {name}", scale, experiment.scales)
        require_choice(f"panel of {name}", panel, (*experiment.panels, "all"))
        require_choice(f"mode of {name}", mode, experiment.modes)
        panels = [one for one in experiment.panels if panel in (one, "all")]
        needing = [one for one in panels if one in experiment.needs_data]
        if data is not None and not needing:
            raise ValueError(
                f"data of {name} is {data!r}; None is required, since no chosen panel needs data"
            )
        if data is None and panel in needing:
            raise ValueError(f"data of {name} is None; a table of your own is required for panel {panel!r}")
        changes: dict[str, Any] = {"rounds": rounds, "trials": trials}
        sizes = {key: value for key, value in changes.items() if value is not None}
        parts = {"panel": (panel, "all"), "mode": (mode, experiment.modes[0])}
        chosen = {key: given for key, (given, default) in parts.items() if given != default}
        options = {"scale": scale, **sizes, **chosen}
        if data is not None:
            options["data"] = shlex.quote(json.dumps(data))
        self._command = " ".join([f"fedbandit reproduce {name}", *(f"--{k} {v}" for k, v in options.items())])
        self._label = "-".join([scale, *(f"{key}{value}" for key, value in sizes.items())])
        self._stem = "-".join([name, self._label, *chosen.values()])
        self._out = out
        self.folder = out / "shards"
        self._experiment = experiment
        size = replace(experiment.scales[scale], **sizes)
        plans = [Plan(one, size, mode, data) for one in panels if data is not None or one not in needing]
        self._runs = [(plan, experiment.runs(plan)) for plan in plans]
        self.cells: list[Cell] = [run for _, runs in self._runs for run in runs]

    def report(self) -> list[Path]:
        """Writes the page, the CSV file and the picture from the stored results of all runs; returns their paths."""
        experiment, panels = self._experiment, self._experiment.panels
        setting = Section(experiment, self._runs[0][0]).render(experiment.setting)
        text = [f"# {experiment.title}", f"Scale `{self._label}`: {setting}"]
        if (trials := self._runs[0][0].scale.trials) < ENOUGH:
            text += [
                f"{trials} trials are too few for verdicts, for which at least {ENOUGH} are required: *exploratory*."
            ]
        sections: dict[str, Section] = {}
        seconds = 0.0
        for plan, runs in self._runs:
            results = [LabelledResult(run.labels, Store(self.folder).load(run)) for run in runs]
            seconds += sum(row.result.cpu_seconds for row in results)
            title = panels[plan.panel]
            section = sections[title] = Section(experiment, plan)
            text += [f"## {title}", section.render(experiment.template, runs=PanelRuns(plan, results))]
        text += [f"![{experiment.title}]({self._file('png').name})"]
        text += [f"Made by `{self._command}`, whose runs took {seconds:.0f} CPU-seconds."]
        self._file("md").write_text("\n\n".join(text) + "\n")
        with self._file("csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(row for section in sections.values() for row in section.rows)
        curves = {title: section.curves for title, section in sections.items()}
        apart = {panels[panel]: axes for panel, axes in experiment.panel_axes.items()}
        beside = {name: other for section in sections.values() for name, other in section.beside.items()}
        panels_png(curves, experiment.axes, experiment.title, self._file("png"), apart, beside=beside)
        return [self._file(suffix) for suffix in ("md", "csv", "png")]

    def _file(self, suffix: str) -> Path:
        return self._out / f"{self._stem}.{suffix}"
