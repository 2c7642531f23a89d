"""The command ``quickstart``."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from fedbandit_envs.leaderboard.cli.run import run_with_progress
from fedbandit_envs.leaderboard.cli.terminal import explained, make_folder, out_console, print_table
from fedbandit_envs.leaderboard.runs.plots import regret_figure, regret_html
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.leaderboard.runs.spec import RunSpec, SettingsError
from fedbandit_envs.leaderboard.runs.statistics import mean_and_half_width

_BASELINES = ("uniform-random", "one-of-each", "SS-UCB")


def quickstart(
    rounds: Annotated[int, typer.Option(help="Horizon T.")] = 10_000,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("fedbandit-quickstart"),
) -> None:
    """Runs three baselines without communication on FedProcurement-v0 and draws their regret.

    Needs the extra `report`.
    """
    with explained(SettingsError):
        runs = [RunSpec(name, "FedProcurement-v0", rounds, seeds) for name in _BASELINES]
    make_folder(out)
    curves: dict[str, RunResult] = {}
    rows = []
    for spec in runs:
        result = curves[spec.baseline] = run_with_progress(spec)
        mean, half_width = mean_and_half_width(result.regret.mean(axis=2))
        low, high = mean[-1] - half_width[-1], mean[-1] + half_width[-1]
        between = "-" if np.isnan(half_width[-1]) else f"{low:,.0f} .. {high:,.0f}"
        share = 100 * (1 - np.interp(rounds // 2, result.rounds, mean) / mean[-1])
        rows.append((spec.baseline, f"{mean[-1]:,.0f}", between, f"{share:.0f} %"))
    print_table(
        f"FedProcurement-v0: 10 agents, 30 producers, {rounds} rounds, {seeds} seeds",
        ("baseline", "regret per agent", "95 % interval", "in the last half"),
        rows,
    )
    out_console.print(
        "A policy that learns incurs ever less of its regret in the last half; the placebos incur 50 %."
    )
    title = "FedProcurement-v0, no communication"
    with explained(OSError, option="--out"):
        regret_figure(curves, title).savefig(out / "regret.png")
        regret_html(curves, title, out / "regret.html")
    for name in ("regret.png", "regret.html"):
        typer.echo(f"regret plot: {(out / name).resolve()}")
