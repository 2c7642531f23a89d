"""The command ``tune``."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fedbandit_envs.checks import require_choice
from fedbandit_envs.leaderboard.cli.backend import BackendOption, SchedulerOption, WorkersOption, backend_of
from fedbandit_envs.leaderboard.cli.terminal import explained, make_folder, out_console, progress_bar
from fedbandit_envs.leaderboard.reproduction.tuning import TUNINGS, cells, findings, written
from fedbandit_envs.leaderboard.run import SettingsError
from fedbandit_envs.leaderboard.sweep.backends import BackendError
from fedbandit_envs.leaderboard.sweep.engine import play
from fedbandit_envs.leaderboard.sweep.store import load, missing_shards
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError


def tune(
    problem: Annotated[str, typer.Argument(help=f"One of {', '.join(TUNINGS)}, or all.")],
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the problem's.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, if not the problem's.")] = None,
    workers: WorkersOption = 2,
    backend: BackendOption = "joblib",
    scheduler: SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for the constants found.")] = Path("fedbandit-tuning"),
) -> None:
    """Tunes a problem's baselines, silent ones first: one grid, one budget, seeds that no experiment plays.

    Writes tuned.json, of which the package has a copy that `SS-UCB-tuned` and its like read. Can be stopped and started
    again.
    """
    with explained(ValueError):
        played_by = backend_of(backend, scheduler, workers)
        require_choice("PROBLEM", problem, (*TUNINGS, "all"))
        plans = {name: cells(name, rounds, seeds) for name in (TUNINGS if problem == "all" else [problem])}
    make_folder(out)
    folder = out / "shards"
    runs = [run for plan in plans.values() for grid in plan.values() for tried in grid for run in tried]
    left = missing_shards([shard for run in runs for shard in run.split()], folder)
    wrong = explained(SettingsError, BudgetExhaustedError, BackendError)
    with wrong, explained(OSError, option="--out"), progress_bar() as progress:
        task = progress.add_task("tune", total=sum(shard.size for shard in left))
        play(left, folder, played_by, partial(progress.advance, task))
    changed = "".join(f" --{name} {value}" for name, value in (("rounds", rounds), ("seeds", seeds)) if value)
    found = findings(plans, lambda run: load(run.split(), folder), f"fedbandit tune {problem}{changed}")
    table = Table("tuned form", "of", "constants", "regret", "at the papers' radius", title="Tuned")
    for name, entry in found["baselines"].items():
        regrets = {json.dumps(constants): regret for constants, regret in entry["tried"]}
        printed = entry["tried"][-1]
        table.add_row(
            name, entry["of"], json.dumps(entry["chosen"]), f"{regrets[json.dumps(entry['chosen'])]:.1f}",
            f"{printed[1]:.1f}",
        )  # fmt: skip
    out_console.print(table)
    path = out / "tuned.json"
    path.write_text(written(found))
    typer.echo(path)
