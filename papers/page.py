"""The tables, numbers and picture that an experiment writes, and the page of a paper in which its tables stand.

A page is Markdown written by hand. A table stands between two marks, ``<!-- NAME -->`` and ``<!-- /NAME -->``, and is
written anew when its experiment is played with the page's folder as ``--out``. All numbers of a paper are in one
compressed table beside its page.
"""

import csv
import gzip
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from math import isnan
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.experiments.plots import figure_of
from fedbandit_envs.experiments.store import Cell, Store
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan
from fedbandit_envs.papers.stats import Curves, Mean, Ratio, Row, Verdict, over_rounds

_MADE = ("experiment", "scale", "settings")
COLUMNS = (*_MADE, "panel", "name", "quantity", "x", "value", "low", "high", "instances", "printed")
"""Columns of a paper's table of numbers.

A row is a ratio (``quantity`` is "ratio"), a point of a curve ("drawn"), a value in a sentence ("in the text") or a
cell of a table. For a cell, ``name`` is the first cell of its line and ``quantity`` the head of its column. ``x`` is
the quantity that is varied. ``printed`` is the text as it is on the page.
"""

Points = Mapping[Any, Any] | Sequence[tuple[Any, Any]]


class Section:
    """What the function ``report`` of an experiment writes of one panel.

    Attributes:
        plan: The panel and the other settings that the user has chosen.
        tables: Markdown tables so far, by name.
        rows: Rows of numbers so far, each a mapping with the keys :data:`COLUMNS`, except the first three.
        curves: Curves of the picture so far, by name: x, y and the lengths of the error bars below and above.
        beside: Names of curves that are drawn dotted, each with the name of the curve whose colour it has.
    """

    def __init__(self, plan: Plan) -> None:
        """Starts an empty section."""
        self.plan = plan
        self.tables: dict[str, str] = {}
        self.rows: list[dict[str, Any]] = []
        self.curves: dict[str, tuple[list[Any], list[float], Array]] = {}
        self.beside: dict[str, str] = {}

    def table(self, name: str, lines: Iterable[Row]) -> None:
        """Adds a table, and its cells that contain digits to the rows.

        Args:
            name: Name of the table, by which the page has its place.
            lines: The lines, each a mapping from the heads of all columns, in order, to the line's cells.
        """
        lines = list(lines)
        text = [f"| {' | '.join(lines[0])} |", "|" + "---|" * len(lines[0])]
        for line in lines:
            first, *others = line.items()
            text.append(f"| {' | '.join(map(str, line.values()))} |")
            for column, cell in others:
                if any(letter.isdigit() for letter in str(cell)):
                    self._record(str(first[1]), column, "", cell, str(cell))
        self.tables[name] = "\n".join(text)

    def verdicts(self, lines: Iterable[Verdict], name: str = "verdicts") -> None:
        """Adds a table of verdicts.

        Args:
            lines: For each line what was measured, the figures, and the verdict; see :func:`.stats.judged`.
            name: Name of the table.
        """
        heads = ("what", "here", "verdict")
        self.table(name, [dict(zip(heads, line, strict=True)) for line in lines])

    def claims(self, claims: Iterable[Claim]) -> None:
        """Adds the table ``claims`` with a line for each privacy claim, such as those of a result."""
        lines = [
            {
                "adjacency": claim.adjacency,
                "composition": claim.composition,
                "epsilon": "-" if claim.epsilon is None else f"{claim.epsilon:.3f}",
                "delta": f"{claim.delta:.3g}",
                "remark": claim.reason,
            }
            for claim in claims
        ]
        self.table("claims", lines)

    def say(self, values: Mapping[str, Any]) -> None:
        """Adds values that sentences of the page state to the rows, and to the table ``numbers``.

        Args:
            values: Each value by its name: a mean or ratio (:class:`.stats.Mean`), a number, or a text.
        """
        text = self.tables.get("numbers", "| number | here |\n|---|---|")
        for name, cell in values.items():
            self._record(name, "in the text", "", cell, str(cell))
            text += f"\n| {name} | {cell} |"
        self.tables["numbers"] = text

    def record(self, curves: Curves, name: str = "{}") -> None:
        """Adds ratios that no table has to the rows.

        Args:
            curves: Ratios by the name of their curve and by x.
            name: Format of the row's name, such as ``"{} / silent"``.
        """
        for line, ratios in curves.items():
            for x, value in ratios.items():
                self._record(name.format(line), "ratio", x, value)

    def draw(self, curves: Mapping[str, Points], beside: Mapping[str, str] = {}) -> None:
        """Adds curves to the picture, and their points to the rows.

        Args:
            curves: Points of each curve by its name in the legend: a mapping from x to y, or pairs of x and y if
                several have the same x. A y is a number, or a mean or ratio, which is drawn with its interval.
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
                if x not in known:
                    self._record(name, "ratio" if isinstance(mean, Ratio) else "drawn", x, point)
            values, below, above = zip(*bars, strict=True)
            self.curves[name] = ([x for x, _ in points], list(values), np.array([below, above]))

    def draw_over_rounds(self, runs: PanelRuns) -> None:
        """Draws cumulative regret per agent over rounds for each algorithm (label ``line``)."""
        self.draw({labels["line"]: over_rounds(result) for labels, result in runs.rows})

    def _record(self, name: str, quantity: str, x: Any, cell: Any, printed: str = "") -> None:
        numbers: dict[str, Any] = {"value": float(cell)} if isinstance(cell, Real) else {}
        if isinstance(cell, Mean):
            numbers = {key: getattr(cell, key) for key in ("value", "low", "high", "instances")}
        row = {"panel": self.plan.panel, "name": name, "quantity": quantity, "x": x, "printed": printed}
        known = {key: number for key, number in numbers.items() if not isnan(number)}
        self.rows.append(dict.fromkeys(COLUMNS[3:], "") | row | known)


class Reproduction:
    """One experiment at one scale, whose results are kept in a folder.

    Attributes:
        cells: The runs of all panels that were chosen.
        folder: Folder of the runs' results, which are stored in shards (a file for a part of a run's seeds).
        stem: Name of the picture, and the beginning of the marks of its tables.
    """

    def __init__(
        self, name: str, experiment: Experiment, out: Path, *,
        scale: str,
        panel: str = "all",
        mode: str = "default",
        rounds: int | None = None,
        trials: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Determines the runs that are needed; nothing is played yet.

        Args:
            name: Name of the experiment.
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
        sizes = {"rounds": rounds, "trials": trials}
        given: dict[str, Any] = {key: value for key, value in sizes.items() if value is not None}
        parts = {"panel": (panel, "all"), "mode": (mode, experiment.modes[0])}
        chosen = {key: own for key, (own, default) in parts.items() if own != default}
        options = {"scale": scale, **given, **chosen}
        if data is not None:
            options["data"] = shlex.quote(json.dumps(data))
        self._command = " ".join([f"fedbandit reproduce {name}", *(f"--{k} {v}" for k, v in options.items())])
        settings = "-".join([*(f"{key}{value}" for key, value in given.items()), *chosen.values()])
        self._made = dict(zip(_MADE, (name, scale, settings), strict=True))
        self.stem = "-".join(part for part in self._made.values() if part)
        self._out, self.folder = out, out / "shards"
        self._experiment = experiment
        size = replace(experiment.scales[scale], **given)
        plans = [Plan(one, size, mode, data) for one in panels if data is not None or one not in needing]
        self._runs = [(plan, experiment.runs(plan)) for plan in plans]
        self.cells: list[Cell] = [run for _, runs in self._runs for run in runs]

    def report(self) -> list[Path]:
        """Writes the tables, numbers and picture from the stored results of all runs.

        Returns:
            Paths of the paper's page, of its compressed table of numbers, and of the picture.
        """
        experiment, store = self._experiment, Store(self.folder)
        sections = {plan.panel: Section(plan) for plan, _ in self._runs}
        seconds = 0.0
        for plan, runs in self._runs:
            results = [(run.labels, store.load(run)) for run in runs]
            seconds += sum(result.cpu_seconds for _, result in results)
            experiment.report(sections[plan.panel], PanelRuns(plan, results))
        page, numbers = (self._out / f"{experiment.paper}{ending}" for ending in (".md", ".csv.gz"))
        picture = self._out / f"{self.stem}.png"
        parts = {
            f"{self.stem} {panel} {name}": text
            for panel, section in sections.items()
            for name, text in section.tables.items()
        }
        parts[f"{self.stem} made"] = f"Made by `{self._command}`, whose runs took {seconds:.0f} CPU-seconds."
        known = page.read_text() if page.exists() else f"# {experiment.paper}\n"
        if f"<!-- {self.stem} " not in known:
            known += f"\n## {experiment.title} ({self.stem})\n\n![{experiment.title}]({picture.name})\n"
        page.write_text(filled(known, parts))
        others = read_numbers(numbers) if numbers.exists() else []
        kept = [row for row in others if any(row[key] != value for key, value in self._made.items())]
        rows = [self._made | row for section in sections.values() for row in section.rows]
        write_numbers(numbers, [*kept, *rows])
        titles = experiment.panels
        figure_of(
            {titles[panel]: section.curves for panel, section in sections.items()},
            experiment.axes,
            experiment.title,
            {titles[panel]: axes for panel, axes in experiment.panel_axes.items()},
            beside={name: other for section in sections.values() for name, other in section.beside.items()},
        ).savefig(picture)
        return [page, numbers, picture]


def filled(page: str, parts: Mapping[str, str]) -> str:
    """Returns a page with parts between their marks; a part whose marks the page lacks is added to its end.

    Args:
        page: Markdown.
        parts: Markdown by the name that stands in its marks.
    """
    for name, text in parts.items():
        first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
        if first not in page:
            page += f"\n{first}\n{last}\n"
        before, _, rest = page.partition(first)
        page = f"{before}{first}\n\n{text}\n\n{last}{rest.partition(last)[2]}"
    return page


def read_numbers(path: Path) -> list[dict[str, str]]:
    """Returns the rows of a paper's compressed table of numbers."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_numbers(path: Path, rows: Iterable[Row]) -> None:
    """Writes a paper's compressed table of numbers, sorted by experiment, scale and settings."""
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=lambda row: [row[name] for name in _MADE]))
    # Without a time the same numbers make the same file.
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
