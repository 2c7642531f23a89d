"""The commands ``fedbandit reproduce`` (a paper's experiments) and ``fedbandit tune`` (constants of baselines)."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.leaderboard.cli import terminal
from fedbandit_envs.leaderboard.reproduction.experiment import experiments
from fedbandit_envs.leaderboard.reproduction.page import Reproduction
from fedbandit_envs.leaderboard.runs.execute import BackendError
from fedbandit_envs.leaderboard.runs.spec import RunSpec, SettingsError
from fedbandit_envs.leaderboard.runs.store import Store
from fedbandit_envs.leaderboard.tuning import FIRST_SEED, TUNINGS, best_constants, tuning_runs
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError


def reproduce(
    experiment: Annotated[str, typer.Argument(help=f"One of {', '.join(experiments())}, or all.")],
    scale: Annotated[
        str, typer.Option(help="small (minutes) or paper; some have tiny, some medium.")
    ] = "small",
    panel: Annotated[str, typer.Option(help="One part of the experiment, or all.")] = "all",
    mode: Annotated[str, typer.Option(help="default (corrected) or printed algorithms.")] = "default",
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the scale's.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Runs of each problem instance, if not the scale's.")
    ] = None,
    workers: terminal.WorkersOption = 2,
    backend: terminal.BackendOption = "joblib",
    scheduler: terminal.SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("fedbandit-reproduction"),
) -> None:
    """Repeats a paper's experiment and sets the paper's numbers beside ours. Can be stopped and started again.

    With `all`, experiments that lack the given panel or mode are left out.
    """
    with terminal.explained(ValueError):
        known = experiments()
        played_by = terminal.backend_of(backend, scheduler, workers)
        require_choice("EXPERIMENT", experiment, (*known, "all"))
        names = [name for name, one in known.items() if mode in one.modes and panel in (*one.panels, "all")]
        reproductions = {
            name: Reproduction(
                name, known[name], out,
                scale=scale, panel=panel, mode=mode, rounds=rounds, trials=trials,
            )
            for name in (names or known if experiment == "all" else [experiment])
        }  # fmt: skip
    terminal.make_folder(out)
    wrong = terminal.explained(SettingsError, BudgetExhaustedError, BackendError)
    with wrong, terminal.explained(OSError, option="--out"):
        for name, reproduction in reproductions.items():
            terminal.play_missing(name, played_by, reproduction.cells, reproduction.folder)
            for path in reproduction.report():
                typer.echo(path)


def tune(
    problem: Annotated[str, typer.Argument(help=f"One of {', '.join(TUNINGS)}, or all.")],
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the problem's.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, if not the problem's.")] = None,
    workers: terminal.WorkersOption = 2,
    backend: terminal.BackendOption = "joblib",
    scheduler: terminal.SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for the constants found.")] = Path("fedbandit-tuning"),
) -> None:
    """Tunes the constants of a problem's baselines, with and without communication, all on one grid and the same seeds.

    No experiment plays these seeds. Writes tuned.json; the package has a copy of it, from which `SS-UCB-tuned` and
    other tuned baselines read their constants. Can be stopped and started again.
    """
    with terminal.explained(ValueError):
        played_by = terminal.backend_of(backend, scheduler, workers)
        require_choice("PROBLEM", problem, (*TUNINGS, "all"))
        runs: dict[str, list[list[RunSpec]]] = {}
        for name in TUNINGS if problem == "all" else [problem]:
            runs |= tuning_runs(name, rounds, seeds)
    terminal.make_folder(out)
    folder = out / "shards"
    cells = [run for grid in runs.values() for tried in grid for run in tried]
    wrong = terminal.explained(SettingsError, BudgetExhaustedError, BackendError)
    with wrong, terminal.explained(OSError, option="--out"):
        terminal.play_missing("tune", played_by, cells, folder)
    found = best_constants(runs, Store(folder).load)
    rows = []
    for name, entry in found.items():
        regrets = [regret for _, regret in entry["tried"]]
        rows.append(
            (name, entry["of"], json.dumps(entry["chosen"]), f"{min(regrets):.1f}", f"{regrets[-1]:.1f}")
        )
    terminal.print_table("Tuned", ("tuned form", "of", "constants", "regret", "at the papers' radius"), rows)
    path = out / "tuned.json"
    changed = "".join(f" --{name} {value}" for name, value in (("rounds", rounds), ("seeds", seeds)) if value)
    command = f"fedbandit tune {problem}{changed}"
    head = json.dumps(
        {"command": command, "version": version("fedbandit-envs"), "first_seed": FIRST_SEED}, indent=1
    )
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in found.items())
    path.write_text(f'{head[:-2]},\n "baselines": {{\n{lines}\n }}\n}}\n')
    typer.echo(path)
