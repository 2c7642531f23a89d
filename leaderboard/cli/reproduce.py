"""The command ``reproduce``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.checks import require_choice
from fedbandit_envs.leaderboard.cli.backend import BackendOption, SchedulerOption, WorkersOption, backend_of
from fedbandit_envs.leaderboard.cli.terminal import ended, explained, make_folder, progress_bar
from fedbandit_envs.leaderboard.reproduction.experiments import EXPERIMENTS
from fedbandit_envs.leaderboard.reproduction.reproduce import Reproduction
from fedbandit_envs.leaderboard.run import SettingsError
from fedbandit_envs.leaderboard.sweep.backends import BackendError
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError


def reproduce(
    experiment: Annotated[str, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}, or all.")],
    scale: Annotated[
        str, typer.Option(help="small (minutes) or paper; some have tiny, some medium.")
    ] = "small",
    panel: Annotated[str, typer.Option(help="One part of the experiment, or all.")] = "all",
    mode: Annotated[str, typer.Option(help="default (mended) or printed algorithms.")] = "default",
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
    with explained(ValueError), ended():
        played_by = backend_of(backend, scheduler, workers)
        require_choice("EXPERIMENT", experiment, (*EXPERIMENTS, "all"))
        names = [
            name for name, one in EXPERIMENTS.items() if mode in one.modes and panel in (*one.panels, "all")
        ]
        reproductions = {
            name: Reproduction(
                name, EXPERIMENTS[name], out,
                scale=scale, panel=panel, mode=mode, rounds=rounds, trials=trials,
            )
            for name in (names or EXPERIMENTS if experiment == "all" else [experiment])
        }  # fmt: skip
    make_folder(out)
    with (
        explained(SettingsError, BudgetExhaustedError, BackendError),
        explained(OSError, option="--out"),
        ended(),
    ):
        for name, reproduction in reproductions.items():
            work = reproduction.work()
            with progress_bar() as progress:
                task = progress.add_task(name, total=work.size)
                reproduction.play(work, played_by, partial(progress.advance, task))
            for path in reproduction.report():
                typer.echo(path)
