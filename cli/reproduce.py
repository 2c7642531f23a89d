"""The command ``reproduce``, which repeats a paper's experiments."""

from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.cli import terminal


def reproduce(
    experiment: Annotated[str | None, typer.Argument(help="Its name, or all; without it, a list.")] = None,
    scale: Annotated[str, typer.Option(help="small or paper; some have tiny or medium.")] = "small",
    panel: Annotated[str, typer.Option(help="One part of the experiment, or all.")] = "all",
    mode: Annotated[str, typer.Option(help="default (corrected) or printed algorithms.")] = "default",
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the scale's.")] = None,
    trials: Annotated[int | None, typer.Option(help="Runs of an instance, if not the scale's.")] = None,
    data: Annotated[str | None, typer.Option(help="Your ratings, for panels that need them.")] = None,
    workers: terminal.WorkersOption = 2,
    scheduler: terminal.SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("fedbandit-reproduction"),
) -> None:
    """Repeats a paper's experiment and sets the paper's numbers beside ours. Can be stopped and started again.

    With `all`, experiments without the given panel or mode are left out. With `--data`, so are experiments that need no
    data; without it, panels that need data. Ratings are a CSV or Parquet file with the columns user, item and rating
    (1 to 5), or JSON: '{"name": "ratings", "table": "my.csv", "scale": [0.5, 5], "user": "who"}'. The scale `small`
    takes minutes, or some hours. Needs the extra `[report]`.

    Example: `fedbandit reproduce fed-pe --scale tiny --out reproduction`
    """
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.experiments.spec import read_value
    from fedbandit_envs.papers.catalogue import experiments
    from fedbandit_envs.papers.page import Reproduction

    known = experiments()
    if experiment is None:
        for name, one in known.items():
            typer.echo(f"{name}: {one.title}. {one.shows}.")
        return
    with terminal.explained(ValueError, TypeError, OSError, ending=[ImportError]):
        table = None if data is None else read_value(data)
        if data is not None and not isinstance(table, dict):
            table = {"name": "ratings", "table": data, "scale": [1, 5]}
        require_choice("EXPERIMENT", experiment, (*known, "all"))
        names = [
            name
            for name, one in known.items()
            if mode in one.modes and panel in (*one.panels, "all") and (table is None or one.needs_data)
        ]
        reproductions = {
            name: Reproduction(
                name, known[name], out,
                scale=scale, panel=panel, mode=mode, rounds=rounds, trials=trials, data=table,
            )
            for name in (names or known if experiment == "all" else [experiment])
        }  # fmt: skip
    terminal.require_report()
    terminal.make_folder(out)
    with terminal.explained_play():
        for name, reproduction in reproductions.items():
            terminal.play_missing(name, workers, scheduler, reproduction.cells, reproduction.folder)
            for path in reproduction.report():
                typer.echo(path)
