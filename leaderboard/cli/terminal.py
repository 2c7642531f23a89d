"""Terminal code shared by all commands: output, errors in the user's input, progress bars, the output folder."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fedbandit_envs.leaderboard.runs.backends import Backend
from fedbandit_envs.leaderboard.runs.execute import play
from fedbandit_envs.leaderboard.runs.store import Cell, missing_shards
from fedbandit_envs.samba.errors import MissingExtraError, SecureError

out_console = Console()
_err_console = Console(stderr=True)


@contextmanager
def explained(*errors: type[Exception], option: str | None = None) -> Iterator[None]:
    """Shows errors in the user's input as a message, with exit code 2; other errors keep their traceback.

    Args:
        *errors: Types of errors that the input can cause.
        option: Name of the option that is wrong, if there is only one.
    """
    try:
        yield
    except errors as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


@contextmanager
def ended(*errors: type[Exception]) -> Iterator[None]:
    """Shows errors that end a command without a result as a message, with exit code 1.

    Args:
        *errors: Types of these errors; those of encrypted runs and of missing extras are always among them.
    """
    ending: tuple[type[Exception], ...] = (SecureError, MissingExtraError, *errors)
    try:
        yield
    except ending as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error


def progress_bar() -> Progress:
    """Returns a progress bar with elapsed and remaining time, on the error stream."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=_err_console)


def play_missing(name: str, backend: Backend, cells: Sequence[Cell], folder: Path) -> None:
    """Plays the shards of cells that a folder does not have yet, with a progress bar.

    Args:
        name: Label of the bar.
        backend: Where to play.
        cells: The cells.
        folder: Folder of the shards.
    """
    missing = missing_shards(cells, folder)
    with progress_bar() as progress:
        task = progress.add_task(name, total=sum(shard.size for shard in missing))
        play(missing, folder, backend, partial(progress.advance, task))


def make_folder(out: Path) -> None:
    """Makes the folder of the results, and checks before anything is played that files can be written to it."""
    with explained(OSError, option="--out"):
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
