"""The commands ``lab`` and ``lab-page``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.leaderboard.cli.backend import WorkersOption
from fedbandit_envs.leaderboard.cli.terminal import explained, make_folder, progress_bar
from fedbandit_envs.leaderboard.lab.page import numbers
from fedbandit_envs.leaderboard.lab.page.page import page
from fedbandit_envs.leaderboard.lab.serve import MissingLabError, serve
from fedbandit_envs.leaderboard.sweep.backends import BackendError, Local


def lab(
    port: Annotated[
        int, typer.Option(help="Of the loopback address; 0 for a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the address in a browser.")] = True,
) -> None:
    """Serves the lab on this machine: choose, run, look. Needs the [lab] extra, and [secure] for its SAMBA tab.

    Ctrl-C ends it. Only browsers of this machine can reach it, with the address that it prints.
    """

    def tell(address: str) -> None:
        typer.echo(f"the lab is at {address}")
        if browser:
            typer.launch(address)

    with explained(OSError, option="--port"):
        try:
            serve(port, tell)
        except MissingLabError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(1) from error


def lab_page(
    out: Annotated[
        Path, typer.Option(help="Folder for lab-page.html, and for lab.json and shards/ if played.")
    ],
    kept: Annotated[
        Path | None, typer.Option("--numbers", help="A lab.json; without it the grid is played, in minutes.")
    ] = None,
    workers: WorkersOption = 2,
) -> None:
    """Writes a page with menus: regret by problem, algorithm, epsilon and schedule. It needs no network.

    Plays what it shows unless it is given the numbers; can be stopped and started again.
    """
    with explained(ValueError, OSError, option="--numbers"):
        found = None if kept is None else numbers.read(kept)
    make_folder(out)
    written = [out / "lab-page.html"]
    if found is None:
        folder = out / "shards"
        with explained(BackendError), explained(OSError, option="--out"), progress_bar() as progress:
            task = progress.add_task("lab-page", total=numbers.size_left(folder))
            found = numbers.played(folder, Local(workers), partial(progress.advance, task))
        written.append(out / "lab.json")
        written[-1].write_text(numbers.written(found), encoding="utf-8")
    written[0].write_text(page(found), encoding="utf-8")
    for path in written:
        typer.echo(path)
