"""The command ``quickstart``."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from fedbandit_envs.leaderboard.cli.run import run_with_progress
from fedbandit_envs.leaderboard.cli.terminal import explained, make_folder, out_console
from fedbandit_envs.leaderboard.figures import regret_html, regret_png
from fedbandit_envs.leaderboard.run import Settings, SettingsError
from fedbandit_envs.leaderboard.simulation import Simulation

_BASELINES = ("uniform-random", "one-of-each", "SS-UCB")


def quickstart(
    rounds: Annotated[int, typer.Option(help="Horizon T.")] = 10_000,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("fedbandit-quickstart"),
) -> None:
    """Lets three silent baselines procure, and draws their regret. Needs the [report] extra."""
    with explained(SettingsError):
        runs = [Settings(name, "FedProcurement-v0", rounds, seeds) for name in _BASELINES]
    make_folder(out)
    curves: dict[str, Simulation] = {}
    table = Table(
        "baseline", "regret per agent", "95 % interval", "in the last half",
        title=f"FedProcurement-v0: 10 agents, 30 producers, {rounds} rounds, {seeds} seeds",
    )  # fmt: skip
    for settings in runs:
        curves[settings.baseline], result = run_with_progress(settings)
        last, half = result["checkpoints"][-1], _regret_at(result, rounds // 2)
        interval = last["regret_ci"]
        between = "-" if interval is None else f"{interval[0]:,.0f} .. {interval[1]:,.0f}"
        share = 100 * (1 - half / last["regret_mean"])
        table.add_row(settings.baseline, f"{last['regret_mean']:,.0f}", between, f"{share:.0f} %")
    out_console.print(table)
    out_console.print(
        "A policy that learns incurs ever less of its regret in the last half; the placebos incur 50 %."
    )
    for suffix, draw in (("png", regret_png), ("html", regret_html)):
        path = out / f"regret.{suffix}"
        with explained(OSError, option="--out"):
            draw(curves, "FedProcurement-v0, no communication", path)
        typer.echo(f"regret plot: {path.resolve()}")


def _regret_at(result: dict[str, Any], round_: int) -> float:
    """Returns the mean regret at a round, interpolated between checkpoints."""
    rows = result["checkpoints"]
    return float(np.interp(round_, [row["round"] for row in rows], [row["regret_mean"] for row in rows]))
