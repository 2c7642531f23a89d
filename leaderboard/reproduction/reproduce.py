"""Plays an experiment's missing shards and writes its CSV file, picture and page."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fedbandit_envs.checks import require_choice
from fedbandit_envs.leaderboard.figures import panels_png
from fedbandit_envs.leaderboard.reproduction.experiment import Experiment, Plan
from fedbandit_envs.leaderboard.reproduction.page import COLUMNS, Section
from fedbandit_envs.leaderboard.sweep import engine
from fedbandit_envs.leaderboard.sweep.backends import Backend
from fedbandit_envs.leaderboard.sweep.cell import Cell
from fedbandit_envs.leaderboard.sweep.store import load, missing_shards


class Work(NamedTuple):
    """What is left to play.

    Attributes:
        shards: The missing shards.
        size: How much they are to play, all together.
    """

    shards: list[Cell]
    size: float


class Reproduction:
    """One experiment at one scale."""

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
        self._folder = out / "shards"
        self._shards: dict[str, dict[str, Sequence[Cell]]] = {
            chosen: {
                run: cell.split() for run, cell in experiment.cells(Plan(chosen, self._scale, mode)).items()
            }
            for chosen in narrowed or experiment.panels
        }

    def work(self) -> Work:
        """Says what is left to play."""
        wanted = [shard for runs in self._shards.values() for run in runs.values() for shard in run]
        left = missing_shards(wanted, self._folder)
        return Work(left, float(sum(shard.size for shard in left)))

    def play(self, work: Work, backend: Backend, advance: Callable[[float], None]) -> None:
        """Plays what is left; see :func:`~fedbandit_envs.leaderboard.sweep.engine.play`."""
        engine.play(work.shards, self._folder, backend, advance)

    def report(self) -> list[Path]:
        """Writes the page, the CSV file and the picture; returns their paths."""
        experiment = self._experiment
        text = [f"# {experiment.title}", ""]
        text += [f"Scale `{self._label}`: {experiment.setting(self._scale, self._mode)}"]
        rows: list[dict[str, Any]] = []
        curves: dict[str, dict[str, tuple[Any, Any, Any]]] = {}
        seconds = 0.0
        for panel, runs in self._shards.items():
            title = experiment.panels[panel]
            results = {name: load(parts, self._folder) for name, parts in runs.items()}
            seconds += sum(result.cpu_seconds for result in results.values())
            section = Section(panel)
            experiment.report(section, results)
            section.record_curves()
            text += ["", f"## {title}", *section.text]
            rows += section.rows
            curves[title] = section.curves
        text += ["", f"![{experiment.title}]({self._file('png').name})", ""]
        text += [f"Made by `{self._command}`, whose runs took {seconds:.0f} CPU-seconds."]
        self._file("md").write_text("\n".join(text) + "\n")
        with self._file("csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        apart = {experiment.panels[panel]: axes for panel, axes in experiment.panel_axes.items()}
        panels_png(curves, experiment.axes, experiment.title, self._file("png"), apart)
        return [self._file(suffix) for suffix in ("md", "csv", "png")]

    def _file(self, suffix: str) -> Path:
        return self._out / f"{self._stem}.{suffix}"
