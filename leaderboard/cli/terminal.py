"""What all commands show alike: results, errors that words typed have caused, progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fedbandit_envs.wrappers.secure.errors import MissingExtraError, SecureError

out_console = Console()
_err_console = Console(stderr=True)


@contextmanager
def explained(*errors: type[Exception], option: str | None = None) -> Iterator[None]:
    """Shows errors that are due to the words typed as a message, with exit code 2; others keep their traceback."""
    try:
        yield
    except errors as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


@contextmanager
def ended() -> Iterator[None]:
    """Shows why an encrypted run has ended without a result, or cannot begin here, with exit code 1."""
    try:
        yield
    except (SecureError, MissingExtraError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error


def progress_bar() -> Progress:
    """Returns a bar with the time passed and the time left, on the error stream."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=_err_console)


def make_folder(out: Path) -> None:
    """Makes the folder of the results, and tries whether it takes files before anything is played."""
    with explained(OSError, option="--out"):
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
