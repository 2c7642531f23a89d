"""Reproduction of one experiment: its runs, and the CSV file, picture and page that report on their results."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.leaderboard.reproduction.experiment import Experiment, Plan
from fedbandit_envs.leaderboard.reproduction.page import COLUMNS, Section
from fedbandit_envs.leaderboard.reproduction.panel_runs import LabelledResult, PanelRuns
from fedbandit_envs.leaderboard.runs.plots import panels_png
from fedbandit_envs.leaderboard.runs.store import Cell, Store


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

        Raises:
            ValueError: A name is unknown or a number out of range.
        """
        require_choice(f"scale of {name}", scale, experiment.scales)
        require_choice(f"panel of {name}", panel, (*experiment.panels, "all"))
        require_choice(f"mode of {name}", mode, experiment.modes)
        changes: dict[str, Any] = {"rounds": rounds, "trials": trials}
        sizes = {key: value for key, value in changes.items() if value is not None}
        parts = {"panel": (panel, "all"), "mode": (mode, experiment.modes[0])}
        chosen = {key: given for key, (given, default) in parts.items() if given != default}
        options = {"scale": scale, **sizes, **chosen}
        self._command = " ".join([f"fedbandit reproduce {name}", *(f"--{k} {v}" for k, v in options.items())])
        self._label = "-".join([scale, *(f"{key}{value}" for key, value in sizes.items())])
        self._stem = "-".join([name, self._label, *chosen.values()])
        self._out = out
        self.folder = out / "shards"
        self._experiment = experiment
        size = replace(experiment.scales[scale], **sizes)
        plans = [Plan(one, size, mode) for one in experiment.panels if panel in (one, "all")]
        self._runs = [(plan, experiment.runs(plan)) for plan in plans]
        self.cells: list[Cell] = [run for _, runs in self._runs for run in runs]

    def report(self) -> list[Path]:
        """Writes the page, the CSV file and the picture from the stored results of all runs; returns their paths."""
        experiment, panels = self._experiment, self._experiment.panels
        setting = Section(experiment, self._runs[0][0]).render(experiment.setting)
        text = [f"# {experiment.title}", f"Scale `{self._label}`: {setting}"]
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
