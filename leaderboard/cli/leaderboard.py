"""The commands ``leaderboard run``, ``submit``, ``verify``, ``report`` and ``withdraw``."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.checks import require_choice
from fedbandit_envs.leaderboard.board import engine
from fedbandit_envs.leaderboard.board.child import EntryError
from fedbandit_envs.leaderboard.board.child.errors import printable
from fedbandit_envs.leaderboard.board.entries import baselines_of
from fedbandit_envs.leaderboard.board.entries import submit as take_in
from fedbandit_envs.leaderboard.board.records import RecordError, Records
from fedbandit_envs.leaderboard.board.result import Result, ResultError
from fedbandit_envs.leaderboard.board.suites import SUITES, Suite
from fedbandit_envs.leaderboard.board.tracks import Track, TrackError, tracks_of
from fedbandit_envs.leaderboard.board.verify import verify as findings_of
from fedbandit_envs.leaderboard.cli.backend import BackendOption, SchedulerOption, WorkersOption, backend_of
from fedbandit_envs.leaderboard.cli.terminal import explained, out_console, progress_bar
from fedbandit_envs.leaderboard.row_check import MixedRowsError
from fedbandit_envs.leaderboard.run import read_value
from fedbandit_envs.leaderboard.sweep.backends import Backend, BackendError

app = typer.Typer(
    no_args_is_help=True, help="Ranks baselines and submitted policies by rows that can be repeated."
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_SUITE = typer.Option(help=f"One of {', '.join(SUITES)}.")
_OUT = typer.Option(help="Folder of results and their record.")
_NEW = typer.Option("--new-edition", help="Draw new luck, in place of that of the folder's latest edition.")


@app.command()
def run(
    suite: Annotated[str, _SUITE],
    out: Annotated[Path, _OUT],
    baselines: Annotated[
        list[str] | None, typer.Argument(metavar="[BASELINE]...", help="Names; all of the suite by default.")
    ] = None,
    track: Annotated[
        list[str] | None,
        typer.Option(help="Tracks; by default all that set no limit on messages. Repeatable."),
    ] = None,
    workers: WorkersOption = 2,
    backend: BackendOption = "joblib",
    scheduler: SchedulerOption = None,
    new_edition: Annotated[bool, _NEW] = False,
) -> None:
    """Plays baselines of a suite on the tracks that they fit. Can be stopped and started again."""
    with explained(ValueError):
        played_by = backend_of(backend, scheduler, workers)
        chosen = _suite(suite)
        names = list(dict.fromkeys(baselines or baselines_of(chosen)))
        for name in names:
            require_choice("BASELINE", name, baselines_of(chosen))
        tracks = [_track(chosen, name) for name in track] if track else _without_limit(chosen)
    rows, left_out = engine.rows_of(chosen, names, tracks)
    for who, why in left_out.items():
        typer.echo(f"left out: {who}: {why}", err=True)
    with explained(ValueError):
        if not rows:
            raise ValueError(f"none of {', '.join(names)} fits {', '.join(track.name for track in tracks)}")
    _play(rows, out, played_by, new_edition)


@app.command()
def submit(
    policy: Annotated[
        str, typer.Argument(help="`policy.py`, `policy.py:Class`, or the entry point `module:Class`.")
    ],
    suite: Annotated[str, _SUITE],
    track: Annotated[str, typer.Option(help="What it may let out; a wrong name shows which there are.")],
    out: Annotated[Path, _OUT],
    name: Annotated[
        str | None, typer.Option(help="In the ranking; by default the file's or the class'.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="policy.key=value, channel.key=value or privatizer.key=value. Repeatable."
        ),
    ] = None,
    workers: WorkersOption = 2,
    backend: BackendOption = "joblib",
    scheduler: SchedulerOption = None,
    new_edition: Annotated[bool, _NEW] = False,
) -> None:
    """Plays a policy of one's own in a process that sees observations and nothing else, and takes its row in."""
    with explained(ValueError, TypeError, OSError, ImportError):
        played_by = backend_of(backend, scheduler, workers)
        chosen = _suite(suite)
        where = _track(chosen, track)
        if where.revealed:
            raise ValueError(
                f"track is {track!r}, which is for lines to compare with; another one is required"
            )
        called = _called(policy, name)
        entry, code = take_in(policy, called, _settings(set_ or []), out / engine.SOURCES)
        row = engine.Row(chosen, where, entry, code)
        engine.try_out(row)
    _play([row], out, played_by, new_edition)


@app.command()
def verify(
    result: Annotated[Path, typer.Argument(help="A result's file, in its folder.")],
    seeds: Annotated[int, typer.Option(help="Seeds of each task that are played again.", min=1)] = 2,
    whole: Annotated[bool, typer.Option("--whole", help="Play all seeds again.")] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="Play with luck drawn now as well, and compare by ranks.")
    ] = False,
) -> None:
    """Looks whether a result is what it says, by playing it again; exit code 1 if it is not."""
    with explained(ResultError, OSError):
        loaded = Result.load(result)
    holds = True
    for finding in findings_of(loaded, result.parent, None if whole else seeds, anew):
        mark = {True: "holds", False: "REFUTED", None: "note"}[finding.holds]
        typer.echo(printable(f"{mark:8} {finding.what}: {finding.detail}"))
        holds &= finding.holds is not False
    raise typer.Exit(0 if holds else 1)


@app.command()
def report(
    results: Annotated[Path, typer.Option(help="Folder of results and their record.")],
    out: Annotated[Path, typer.Option(help="Folder for the pages.")],
    readme: Annotated[
        Path | None,
        typer.Option(help="Markdown file whose table between the leaderboard's marks is renewed."),
    ] = None,
) -> None:
    """Writes `leaderboard.html`, `leaderboard.md` and `leaderboard.png` from the rows that stand."""
    # Slow to import, and no other command draws.
    from fedbandit_envs.leaderboard.board.report import report as write

    with explained(ResultError, RecordError, OSError):
        records = Records(results)
        rows = records.standing()
        if not rows:
            raise ResultError(f"{results} has no rows that stand")
        out.mkdir(parents=True, exist_ok=True)
        left_out = records.strays()
        missing = write(rows, out, records.withdrawn(), readme)
    for line in (*(f"left out: {stray}" for stray in left_out), missing):
        if line:
            typer.echo(printable(line), err=True)
    typer.echo(f"{len(rows)} rows: {(out / 'leaderboard.html').resolve()}")


@app.command()
def withdraw(
    result: Annotated[Path, typer.Argument(help="A result's file, in its folder.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept in the record.")],
) -> None:
    """Takes a row out; file and record stay, and the record says why."""
    with explained(ResultError, RecordError, OSError):
        loaded = Result.load(result)
        Records(result.parent).take_out(loaded, reason)
    typer.echo(f"withdrawn: {loaded.entry.name} on {loaded.track} of {loaded.suite}")


def _play(rows: Sequence[engine.Row], out: Path, backend: Backend, new_edition: bool) -> None:
    """Plays rows with progress, and prints where they stand."""
    try:
        with explained(OSError, option="--out"):
            out.mkdir(parents=True, exist_ok=True)
            opened = Records(out).edition(rows[0].suite, new_edition)
        with progress_bar() as progress:
            task = progress.add_task(rows[0].suite.name, total=engine.unplayed(rows, opened, out))
            files = engine.run(rows, opened, out, backend, lambda played: progress.advance(task, played))
    except (
        TrackError,
        EntryError,
        MixedRowsError,
        UnfitError,
        RecordError,
        ResultError,
        BackendError,
    ) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error
    table = Table("track", "entry", "regret per agent, by task", "file", title=f"edition {opened.edition.id}")
    for row, file in zip(rows, files, strict=True):
        last = [sum(task.regret[-1]) / len(task.seeds) for task in Result.load(file).tasks]
        table.add_row(row.track.name, row.entry.name, ", ".join(f"{mean:,.1f}" for mean in last), file.name)
    out_console.print(table)


def _suite(name: str) -> Suite:
    require_choice("suite", name, SUITES)
    return SUITES[name]


def _track(suite: Suite, name: str) -> Track:
    tracks = tracks_of(suite)
    require_choice("track", name, tracks)
    return tracks[name]


def _without_limit(suite: Suite) -> list[Track]:
    return [track for track in tracks_of(suite).values() if not track.messages]


def _called(policy: str, name: str | None) -> str:
    """Returns the name of a submission, which is nobody else's."""
    place, _, attribute = policy.rpartition(":")
    called = name if name is not None else attribute if place else Path(policy).stem
    if not _NAME.fullmatch(called):
        raise ValueError(f"name is {called!r}; up to 100 letters, digits and any of ._+- are required")
    if called in BASELINES:
        raise ValueError(f"name is {called!r}, which is a baseline's; another one is required")
    return called


def _settings(assignments: Sequence[str]) -> dict[str, dict[str, Any]]:
    settings: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        part, dot, name = key.partition(".")
        if not (equals and dot and name.isidentifier()):
            raise ValueError(f"--set {assignment!r} is not part.key=value")
        settings.setdefault(part, {})[name] = read_value(text)
    return settings
