"""Terminal code shared by all commands: tables, errors in the user's input, progress bars, common options."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

if TYPE_CHECKING:
    from fedbandit_envs.experiments.store import Cell

out_console = Console()

WorkersOption = Annotated[int, typer.Option(help="Number of processes.", min=1)]
SchedulerOption = Annotated[str | None, typer.Option(help="Dask's scheduler, which plays: tcp://HOST:PORT.")]
OutOption = Annotated[Path, typer.Option("--out", help="Folder for results.", file_okay=False)]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="key=value: an argument. Repeatable.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

# Click's UsageError; newer versions of typer have a copy of Click.
_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]


class Commands(TyperGroup):
    """Commands whose errors name what else takes an option that one of them does not have."""

    def invoke(self, ctx: Any) -> Any:
        """Runs a command; an error in its words says what the words may be."""
        try:
            return super().invoke(ctx)
        except _USAGE_ERROR as error:
            if error.ctx is not None and error.ctx.parent is ctx:
                self._explain(error)
            raise

    def _explain(self, error: Any) -> None:
        """Adds to the message of an error what the user may have meant."""
        said, command = error.message.rstrip("."), error.ctx.command
        option = getattr(error, "option_name", "")
        own = [name for one in command.params for name in one.opts if name.startswith("--")]
        if type(error) in typer.BadParameter.__bases__:
            error.message = f"{said}; {command.name} has the options {', '.join(own)}"
        elif option not in own and hasattr(error, "possibilities"):
            error.possibilities = get_close_matches(option, own, cutoff=0.75)
            others = [
                f"`{name}`"
                for name, other in self.commands.items()
                if any(option in one.opts for one in other.params)
            ]
            if others and not error.possibilities:
                error.message = f"{said}, which is an option of {', '.join(others)}"
            elif not error.possibilities and "--set" in own:
                error.message = f"{said}; arguments follow --set, such as --set {option.lstrip('-')}=VALUE"


def main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Takes the options of ``fedbandit`` itself."""
    if version:
        typer.echo(metadata.version("fedbandit-envs"))
        raise typer.Exit


@contextmanager
def explained(
    *errors: type[Exception], option: str | None = None, ending: Sequence[type[Exception]] = ()
) -> Iterator[None]:
    """Shows the given types of errors as a message, and lets all others pass.

    Args:
        *errors: Types of errors that the user's input can cause; the exit code is 2.
        option: Name of the option that is wrong, if there is only one.
        ending: Types of errors that are not the user's fault, shown as a message, too; the exit code is 1.
    """
    try:
        yield
    except errors as error:
        raise typer.BadParameter(re.sub(r"^\[Errno \d+\] ", "", str(error)), param_hint=option) from error
    except tuple(ending) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error


@contextmanager
def explained_play(out: Path) -> Iterator[None]:
    """Makes the folder of the results, and shows errors as a message while runs are played and results written."""
    from fedbandit_envs.experiments.execute import BackendError
    from fedbandit_envs.experiments.spec import REFUSALS

    with explained(*REFUSALS, BackendError), explained(OSError, option="--out"):
        out.mkdir(parents=True, exist_ok=True)
        # Before time is spent on runs, this shows that files can be written.
        with TemporaryFile(dir=out):
            pass
        yield


def print_table(title: str, heads: Iterable[str], rows: Iterable[Sequence[str]], *, whole: str = "") -> None:
    """Prints a table with a title, the heads of its columns, and rows of cells.

    Long cells are wrapped, not cut: two names that begin alike would else look the same. Cells of the column with the
    head ``whole`` are not wrapped, so that they can be copied.
    """
    from rich.markup import escape
    from rich.table import Column, Table

    columns = [Column(head, overflow="fold", no_wrap=head == whole) for head in heads]
    table = Table(*columns, title=escape(title))
    for row in rows:
        table.add_row(*map(escape, row))
    out_console.print(table)


def play_missing(
    name: str, cells: Sequence["Cell"], folder: Path, *, workers: int, scheduler: str | None
) -> None:
    """Plays those parts of runs whose results a folder does not have yet, with a progress bar.

    Args:
        name: Label of the bar.
        cells: The runs, or other cells (units of work that are split into shards, a file each).
        folder: Folder of the shards' files.
        workers: Number of processes that play.
        scheduler: Address of a Dask scheduler whose workers play instead.
    """
    from fedbandit_envs.experiments.execute import play, progress
    from fedbandit_envs.experiments.store import Store

    missing = Store(folder).missing(cells)
    try:
        with progress(name, sum(shard.size for shard in missing)) as update:
            play(missing, folder, workers, scheduler, lambda played: update(advance=played))
    except KeyboardInterrupt:
        typer.echo(f"Stopped. {folder} has what is finished; the same command plays the rest.", err=True)
        raise


def require_extra(extra: str, *names: str) -> None:
    """Ends the command if libraries of an extra are missing, before time is spent on runs."""
    for name in names:
        if find_spec(name) is None:
            install = f"python -m pip install 'fedbandit-envs[{extra}]'"
            typer.echo(f"Error: {name} is missing, which comes with the [{extra}] extra: {install}", err=True)
            raise typer.Exit(1)
