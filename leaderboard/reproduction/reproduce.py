"""Plays an experiment's missing shards and writes its CSV file, picture and page."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.leaderboard.reproduction.experiment import Experiment, Plan
from fedbandit_envs.leaderboard.reproduction.page import COLUMNS, Section, render
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
            name: Of the experiment; the results' files begin with it.
            experiment: What to reproduce.
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
        overrides: dict[str, Any] = {"rounds": rounds, "trials": trials}
        changes = {key: value for key, value in overrides.items() if value is not None}
        self._experiment = experiment
        self._scale = replace(experiment.scales[scale], **changes)
        self._mode = mode
        self._label = "-".join([scale, *(f"{key}{value}" for key, value in changes.items())])
        narrowed = [panel] if panel != "all" else []
        printed = [mode] if mode != experiment.modes[0] else []
        self._stem = "-".join([name, self._label, *narrowed, *printed])
        options = {"scale": scale, **changes, **({"panel": panel} if narrowed else {})}
        options |= {"mode": mode} if printed else {}
        self._command = " ".join(
            ["fedbandit reproduce", name, *(f"--{key} {value}" for key, value in options.items())]
        )
        self._out = out
        self.folder = out / "shards"
        self._plans = [Plan(chosen, self._scale, mode) for chosen in narrowed or experiment.panels]
        self._runs = {plan.panel: experiment.runs(plan) for plan in self._plans}
        self.cells: list[Cell] = [run for runs in self._runs.values() for run in runs]

    def report(self) -> list[Path]:
        """Writes the page, the CSV file and the picture; returns their paths."""
        experiment = self._experiment
        setting = render(experiment, experiment.setting, self._plans[0])
        text = [f"# {experiment.title}", f"Scale `{self._label}`: {setting}"]
        sections = []
        seconds = 0.0
        for plan in self._plans:
            results = [
                LabelledResult(run.labels, Store(self.folder).load(run)) for run in self._runs[plan.panel]
            ]
            seconds += sum(row.result.cpu_seconds for row in results)
            runs = PanelRuns(plan, results)
            section = Section(plan.panel)
            text += [f"## {experiment.panels[plan.panel]}", section.render(experiment, runs)]
            sections.append(section)
        text += [f"![{experiment.title}]({self._file('png').name})"]
        text += [f"Made by `{self._command}`, whose runs took {seconds:.0f} CPU-seconds."]
        self._file("md").write_text("\n\n".join(text) + "\n")
        with self._file("csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(row for section in sections for row in section.rows)
        curves = {experiment.panels[section.panel]: section.curves for section in sections}
        apart = {experiment.panels[panel]: axes for panel, axes in experiment.panel_axes.items()}
        beside = {name: other for section in sections for name, other in section.beside.items()}
        panels_png(curves, experiment.axes, experiment.title, self._file("png"), apart, beside=beside)
        return [self._file(suffix) for suffix in ("md", "csv", "png")]

    def _file(self, suffix: str) -> Path:
        return self._out / f"{self._stem}.{suffix}"
