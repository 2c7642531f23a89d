"""Plays an experiment's missing shards and writes its CSV file, picture and page."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fedbandit_envs.leaderboard.figures import panels_png
from fedbandit_envs.leaderboard.reproduction import pfcb, reports
from fedbandit_envs.leaderboard.reproduction.cells import Result, load, missing_shards, play, shards
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.procurement.market import LawName


class Experiment(NamedTuple):
    """One experiment of a paper.

    Attributes:
        title: What it shows.
        runs: Names and settings of its runs, for a planner and a law.
        report: Writes a law's part of the page.
    """

    title: str
    runs: Callable[[pfcb.Planner, LawName], dict[str, Settings]]
    report: Callable[[reports.Page, LawName, reports.Results], None]


EXPERIMENTS = {
    "pfcb-exp1": Experiment("P-FCB, EXP1 (Figure 3): regret over rounds", pfcb.exp1, reports.exp1),
    "pfcb-exp2": Experiment("P-FCB, EXP2 (Figure 4): regret against epsilon", pfcb.exp2, reports.exp2),
    "pfcb-exp3": Experiment("P-FCB, EXP3 (Figure 5): regret against agents", pfcb.exp3, reports.exp3),
    "pfcb-fig2": Experiment("P-FCB, Figure 2: sharing true data every round", pfcb.fig2, reports.fig2),
}
"""Every experiment that can be reproduced, by name."""


class Work(NamedTuple):
    """What is left to play.

    Attributes:
        shards: The missing shards.
        agent_rounds: Their size.
    """

    shards: list[Settings]
    agent_rounds: float


class Reproduction:
    """One experiment at one scale."""

    def __init__(self, name: str, scale: str, laws: Sequence[LawName], printed: bool, out: Path) -> None:
        """Plans the runs.

        Args:
            name: One of ``EXPERIMENTS``.
            scale: One of ``pfcb.SCALES``.
            laws: Market laws.
            printed: Whether the algorithms are those printed, rather than the mended ones.
            out: Folder of the results; shards go to ``out/shards``, shared by all experiments.
        """
        self._name = name
        self._scale = scale
        self._printed = printed
        self._out = out
        self._folder = out / "shards"
        planner = pfcb.Planner(pfcb.SCALES[scale], printed)
        self._runs = {law: EXPERIMENTS[name].runs(planner, law) for law in laws}

    def _shards(self, settings: Settings) -> list[Settings]:
        markets = len(settings.env_kwargs["market_seed"])
        return shards(settings, settings.env_kwargs["num_agents"], markets)

    def work(self) -> Work:
        """Says what is left to play."""
        wanted = [
            shard
            for runs in self._runs.values()
            for settings in runs.values()
            for shard in self._shards(settings)
        ]
        left = missing_shards(wanted, self._folder)
        size = sum(shard.rounds * shard.seeds * shard.env_kwargs["num_agents"] for shard in left)
        return Work(left, float(size))

    def play(self, work: Work, workers: int, advance: Callable[[float], None]) -> None:
        """Plays what is left; see :func:`~fedbandit_envs.leaderboard.reproduction.cells.play`."""
        if work.shards:
            play(work.shards, self._folder, workers, advance)

    def report(self) -> list[Path]:
        """Writes the page, the CSV file and the picture; returns their paths."""
        experiment, scale = EXPERIMENTS[self._name], pfcb.SCALES[self._scale]
        page = reports.Page([f"# {experiment.title}", "", self._setting(scale)])
        seconds = 0.0
        for law, runs in self._runs.items():
            results: dict[str, Result] = {
                name: load(self._shards(settings), self._folder) for name, settings in runs.items()
            }
            seconds += sum(result.cpu_seconds for result in results.values())
            page.text += ["", f"## {law.capitalize()} law"]
            experiment.report(page, law, results)
        page.text += ["", f"![{experiment.title}]({self._file('png').name})", ""]
        page.text += [f"The runs took {seconds:.0f} CPU-seconds when they were played."]
        self._file("md").write_text("\n".join(page.text) + "\n")
        with self._file("csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["law", "name", "x", "value", "low", "high", "least", "most"])
            writer.writeheader()
            writer.writerows(page.rows)
        panels_png(page.curves, page.axes, experiment.title, self._file("png"))
        return [self._file(suffix) for suffix in ("md", "csv", "png")]

    def _file(self, suffix: str) -> Path:
        mode = "-printed" if self._printed else ""
        return self._out / f"{self._name}-{self._scale}{mode}.{suffix}"

    def _setting(self, scale: pfcb.Scale) -> str:
        algorithms = "as printed" if self._printed else "as mended (see `fedbandit list`)"
        return (
            f"Scale `{self._scale}`: T = {scale.rounds:,}, {pfcb.MARKETS} markets x {scale.runs} runs, 30 producers; "
            f"algorithms {algorithms}. All algorithms meet the same markets and the same luck. Brackets are 95 % "
            "bootstrap intervals over runs, markets held fixed; 'markets' is the range of single markets' ratios. "
            "Markets are the first five whose quality constraint binds for none of 40 agents."
        )
