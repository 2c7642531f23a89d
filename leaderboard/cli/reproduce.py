"""The command ``reproduce``."""

from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.leaderboard.cli.backend import BackendOption, SchedulerOption, WorkersOption, backend_of
from fedbandit_envs.leaderboard.cli.terminal import explained, make_folder, play_missing
from fedbandit_envs.leaderboard.reproduction.experiment import experiments
from fedbandit_envs.leaderboard.reproduction.reproduce import Reproduction
from fedbandit_envs.leaderboard.runs.backends import BackendError
from fedbandit_envs.leaderboard.runs.spec import SettingsError
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
    workers: WorkersOption = 2,
    backend: BackendOption = "joblib",
    scheduler: SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("fedbandit-reproduction"),
) -> None:
    """Repeats a paper's experiment and sets its numbers beside ours. Can be stopped and started again.

    With `all`, experiments that do not have the panel or the mode asked for are left out.
    """
    with explained(ValueError):
        known = experiments()
        played_by = backend_of(backend, scheduler, workers)
        require_choice("EXPERIMENT", experiment, (*known, "all"))
        names = [name for name, one in known.items() if mode in one.modes and panel in (*one.panels, "all")]
        reproductions = {
            name: Reproduction(
                name, known[name], out,
                scale=scale, panel=panel, mode=mode, rounds=rounds, trials=trials,
            )
            for name in (names or known if experiment == "all" else [experiment])
        }  # fmt: skip
    make_folder(out)
    wrong = explained(SettingsError, BudgetExhaustedError, BackendError)
    with wrong, explained(OSError, option="--out"):
        for name, reproduction in reproductions.items():
            play_missing(name, played_by, reproduction.cells, reproduction.folder)
            for path in reproduction.report():
                typer.echo(path)
