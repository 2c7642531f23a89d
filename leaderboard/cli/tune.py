"""The command ``tune``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.leaderboard.cli.backend import BackendOption, SchedulerOption, WorkersOption, backend_of
from fedbandit_envs.leaderboard.cli.terminal import explained, make_folder, play_missing, print_table
from fedbandit_envs.leaderboard.runs.backends import BackendError
from fedbandit_envs.leaderboard.runs.spec import RunSpec, SettingsError
from fedbandit_envs.leaderboard.runs.store import load
from fedbandit_envs.leaderboard.tuning import TUNINGS, best_constants, tuning_runs, written
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

    Writes tuned.json; the package has a copy of it, from which `SS-UCB-tuned` and other tuned baselines read their
    constants. Can be stopped and started again.
    """
    with explained(ValueError):
        played_by = backend_of(backend, scheduler, workers)
        require_choice("PROBLEM", problem, (*TUNINGS, "all"))
        runs: dict[str, list[list[RunSpec]]] = {}
        for name in TUNINGS if problem == "all" else [problem]:
            runs |= tuning_runs(name, rounds, seeds)
    make_folder(out)
    folder = out / "shards"
    cells = [run for grid in runs.values() for tried in grid for run in tried]
    wrong = explained(SettingsError, BudgetExhaustedError, BackendError)
    with wrong, explained(OSError, option="--out"):
        play_missing("tune", played_by, cells, folder)
    found = best_constants(runs, lambda run: load(run, folder))
    rows = []
    for name, entry in found.items():
        regrets = [regret for _, regret in entry["tried"]]
        rows.append(
            (name, entry["of"], json.dumps(entry["chosen"]), f"{min(regrets):.1f}", f"{regrets[-1]:.1f}")
        )
    print_table("Tuned", ("tuned form", "of", "constants", "regret", "at the papers' radius"), rows)
    path = out / "tuned.json"
    changed = "".join(f" --{name} {value}" for name, value in (("rounds", rounds), ("seeds", seeds)) if value)
    path.write_text(written(found, f"fedbandit tune {problem}{changed}"))
    typer.echo(path)
