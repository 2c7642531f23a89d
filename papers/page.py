"""The page of a paper, in which the tables of its experiments stand, and the files that an experiment writes.

A page is Markdown written by hand. A table stands between two marks, ``<!-- NAME -->`` and ``<!-- /NAME -->``, and is
written anew when its experiment is played with the page's folder as ``--out``. All numbers of a paper are in one
compressed table beside its page.
"""

import csv
import gzip
import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedbandit_envs.basics.checks import require_choice, require_integer
from fedbandit_envs.experiments.plots import figure_of
from fedbandit_envs.experiments.store import Cell, Store
from fedbandit_envs.papers.experiment import COLUMNS, Experiment, PanelRuns, Plan, Section
from fedbandit_envs.papers.stats import Row

_MADE = ("experiment", "scale", "settings")


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
            raise ValueError(f"data of {name} is {data!r}; None is required, since no chosen panel needs it")
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
        size = experiment.scales[scale]._replace(**given)
        require_integer("rounds", size.rounds, 1)
        require_integer("trials", size.trials, 2)
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
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def write_numbers(path: Path, rows: Iterable[Row]) -> None:
    """Writes a paper's compressed table of numbers, sorted by experiment, scale and settings."""
    # pandas is in an extra, which is asked for before anything is played.
    import pandas as pd

    # As objects, so that whole numbers stay whole.
    table = pd.DataFrame(rows, columns=[*_MADE, *COLUMNS], dtype=object).sort_values([*_MADE])
    # Without a time the same numbers make the same file.
    path.write_bytes(gzip.compress(table.to_csv(index=False, lineterminator="\n").encode(), mtime=0))
