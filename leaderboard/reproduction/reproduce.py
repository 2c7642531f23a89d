"""Plays an experiment's missing shards and writes its CSV file, picture and page."""

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
    """One experiment at one scale.

    Attributes:
        cells: The runs of all its panels.
        folder: Folder of their shards.
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
        """Plans the runs.

        Args:
            name: Name of the experiment, with which the names of the results' files begin.
            experiment: The experiment.
            out: Folder of the results; shards go to ``out/shards``, shared by all experiments.
            scale: One of the experiment's scales.
            panel: One of its panels, or ``all``.
            mode: One of its modes.
            rounds: Horizon, if not the scale's.
            trials: Runs of each problem instance, if not the scale's.

        Raises:
            ValueError: A name is unknown or a number out of range.
        """
        require_choice(f"scale of {name}", scale, experiment.scales)
        require_choice(f"panel of {name}", panel, (*experiment.panels, "all"))
        require_choice(f"mode of {name}", mode, experiment.modes)
        changes: dict[str, Any] = {"rounds": rounds, "trials": trials}
        sizes = {key: value for key, value in changes.items() if value is not None}
        options: dict[str, Any] = {"scale": scale, **sizes}
        if panel != "all":
            options["panel"] = panel
        if mode != experiment.modes[0]:
            options["mode"] = mode
        self._command = " ".join([f"fedbandit reproduce {name}", *(f"--{k} {v}" for k, v in options.items())])
        self._label = "-".join([scale, *(f"{key}{value}" for key, value in sizes.items())])
        self._stem = "-".join(
            [name, self._label, *(options[key] for key in ("panel", "mode") if key in options)]
        )
        self._out = out
        self.folder = out / "shards"
        self._experiment = experiment
        size = replace(experiment.scales[scale], **sizes)
        plans = [Plan(one, size, mode) for one in experiment.panels if panel in (one, "all")]
        self._runs = [(plan, experiment.runs(plan)) for plan in plans]
        self.cells: list[Cell] = [run for _, runs in self._runs for run in runs]

    def report(self) -> list[Path]:
        """Writes the page, the CSV file and the picture; returns their paths."""
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
