"""The commands ``leaderboard run``, ``submit``, ``verify``, ``report`` and ``withdraw``."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fedbandit_envs.baselines.comparison_lines import TUNED
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.cli import terminal
from fedbandit_envs.experiments.execute import Backend, BackendError
from fedbandit_envs.experiments.spec import read_assignments
from fedbandit_envs.leaderboard import engine
from fedbandit_envs.leaderboard.entries import baselines_of, require_random, submission_of
from fedbandit_envs.leaderboard.pooling import PooledRowsError
from fedbandit_envs.leaderboard.published import is_open, newest_published
from fedbandit_envs.leaderboard.records import RecordError, Records
from fedbandit_envs.leaderboard.report.rows import lines_of
from fedbandit_envs.leaderboard.result import ResultError, ResultFile
from fedbandit_envs.leaderboard.row_check import MixedRowsError
from fedbandit_envs.leaderboard.sandbox import EntryError
from fedbandit_envs.leaderboard.sandbox.errors import printable
from fedbandit_envs.leaderboard.sandbox.process import require_linux
from fedbandit_envs.leaderboard.suites import SUITES, Suite
from fedbandit_envs.leaderboard.tracks import TrackError, tracks_of
from fedbandit_envs.leaderboard.verify import verify as findings_of

app = typer.Typer(
    no_args_is_help=True, help="Ranks baselines and submitted policies by results that anybody can reproduce."
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
# Errors while rows are played that are expected, and so are shown as a message without a traceback.
_REFUSALS = (
    TrackError,
    EntryError,
    MixedRowsError,
    PooledRowsError,
    UnfitError,
    RecordError,
    ResultError,
    BackendError,
    OSError,
)

_SuiteOption = Annotated[str, typer.Option("--suite", help=f"One of {', '.join(SUITES)}.")]
_OutOption = Annotated[Path, typer.Option("--out", help="Folder of results and their record.")]
_NewOption = Annotated[
    bool,
    typer.Option("--new-edition", help="Draw new random numbers, in place of the folder's latest edition."),
]
_EditionOption = Annotated[
    str | None,
    typer.Option("--edition", help="`published`: the published rows' seeds; your row then has no rank."),
]
_ResultArgument = Annotated[Path, typer.Argument(help="The file of a result, in its folder.")]


@app.command()
def run(
    suite: _SuiteOption,
    out: _OutOption,
    baselines: Annotated[
        list[str] | None, typer.Argument(metavar="[BASELINE]...", help="Names; all of the suite by default.")
    ] = None,
    track: Annotated[
        list[str] | None, typer.Option(help="Tracks; by default all that do not limit messages. Repeatable.")
    ] = None,
    workers: terminal.WorkersOption = 2,
    backend: terminal.BackendOption = "joblib",
    scheduler: terminal.SchedulerOption = None,
    new_edition: _NewOption = False,
    edition: _EditionOption = None,
) -> None:
    """Runs baselines of a suite on the tracks that they fit. Can be stopped and started again.

    Example: `fedbandit leaderboard run LinUCB --suite linear-quick --out results`
    """
    with terminal.explained(ValueError):
        played_by = terminal.backend_of(backend, scheduler, workers)
        played = terminal.chosen("suite", suite, SUITES)
        published = _is_published(played, edition, new_edition)
        require_random(played)
        known = baselines_of(played)
        names = list(dict.fromkeys(baselines or known))
        for name in names:
            require_choice("BASELINE", name, known)
        tracks = tracks_of(played)
        unlimited = [one for one in tracks.values() if not one.messages]
        played_on = [terminal.chosen("track", name, tracks) for name in track or []] or unlimited
    rows, left_out = engine.rows_of(played, names, played_on)
    for who, why in left_out.items():
        typer.echo(f"left out: {who}: {why}", err=True)
    with terminal.explained(ValueError):
        if not rows:
            raise ValueError(f"none of {', '.join(names)} fits {', '.join(one.name for one in played_on)}")
    _play(rows, out, played_by, new_edition, published)


@app.command()
def submit(
    policy: Annotated[str, typer.Argument(help="`policy.py`, `policy.py:Class` or `module:Class`.")],
    suite: _SuiteOption,
    track: Annotated[str, typer.Option(help="What it may send: silent, private-1, ... (errors list all).")],
    out: _OutOption,
    name: Annotated[str | None, typer.Option(help="Its name; by default the file's or the class'.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="{policy,channel,privatizer}.key=value. Repeatable.")
    ] = None,
    workers: terminal.WorkersOption = 2,
    backend: terminal.BackendOption = "joblib",
    scheduler: terminal.SchedulerOption = None,
    new_edition: _NewOption = False,
    edition: _EditionOption = None,
) -> None:
    """Runs your own policy in a separate process that is given observations only, and adds its row to the ranking.

    Needs Linux, which confines the process.

    Example: `fedbandit leaderboard submit mine.py --suite linear-quick --track silent --out mine`
    """
    with terminal.explained(ValueError, TypeError, OSError, ImportError):
        require_linux()
        played_by = terminal.backend_of(backend, scheduler, workers)
        played = terminal.chosen("suite", suite, SUITES)
        published = _is_published(played, edition, new_edition)
        require_random(played)
        where = terminal.chosen("track", track, tracks_of(played))
        if where.revealed:
            raise ValueError(f"track is {track!r}, for lines to compare with; another one is required")
        submission = submission_of(policy, _name(policy, name), _settings(set_ or []), out / engine.SOURCES)
        row = engine.Row(played, where, *submission)
        row.try_out()
    _play([row], out, played_by, new_edition, published)
    there = {one.entry.name for one in Records(out).standing() if one.suite == suite}
    compared = dict.fromkeys([played.reference, lines_of(suite).get(TUNED, played.reference)])
    if missing := [name for name in compared if name not in there]:
        command = f"fedbandit leaderboard run {' '.join(missing)} --suite {suite} --out {out}"
        typer.echo(
            f"Scores compare with {' and '.join(missing)}: {command}" + " --edition published" * published
        )


@app.command()
def verify(
    result: _ResultArgument,
    seeds: Annotated[int, typer.Option(help="Seeds of each task that are replayed.", min=1)] = 2,
    whole: Annotated[bool, typer.Option("--whole", help="Replay all seeds.")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="Also compare with new random numbers.")] = False,
) -> None:
    """Checks a result by replaying it; exit code 1 if the replay differs.

    Example: `fedbandit leaderboard verify results/*.silent.LinUCB.json`
    """
    with terminal.explained(ResultError, OSError):
        loaded = ResultFile.load(result)
    holds = True
    with terminal.explained(ending=[RecordError, OSError]):
        for finding in findings_of(loaded, result.parent, None if whole else seeds, anew):
            mark = {True: "holds", False: "REFUTED", None: "note"}[finding.holds]
            typer.echo(printable(f"{mark:8} {finding.what}: {finding.detail}"))
            holds &= finding.holds is not False
    raise typer.Exit(0 if holds else 1)


@app.command()
def report(
    results: Annotated[list[Path], typer.Option(help="Folder of results and their record. Repeatable.")],
    out: Annotated[Path, typer.Option(help="Folder for the pages.")],
    readme: Annotated[
        Path | None,
        typer.Option(help="Markdown file whose table between the leaderboard's marks is renewed."),
    ] = None,
) -> None:
    """Writes `leaderboard.html`, `leaderboard.md` and `leaderboard.png` from all rows that are not withdrawn.

    Needs the extra `[report]`.

    Example: `fedbandit leaderboard report --results results --out report`
    """
    # Imported here, since importing the plotting code is slow and no other command of this file draws.
    from fedbandit_envs.leaderboard.report import report as write

    # ResultError is a ValueError, and so is the error of a README that is no text.
    with terminal.explained(ValueError, RecordError, OSError, ImportError):
        # A row that is in two folders is open only if it is open in both, and withdrawn if it is so in one.
        rows: dict[str, ResultFile] = {}
        withdrawn: dict[str, dict[str, str]] = {}
        closed: set[str] = set()
        folders = [Records(folder) for folder in results]
        for records in folders:
            lines = records.lines()
            own = {row.digest: row for row in records.standing()}
            closed |= {digest for digest, row in own.items() if not is_open(row, lines)}
            withdrawn |= {row["result"]: row for row in records.withdrawn()}
            rows |= own
        standing = [row for digest, row in rows.items() if digest not in withdrawn]
        if not standing:
            raise ResultError(f"{', '.join(map(str, results))} has no rows that stand")
        left_out = [stray for records in folders for stray in records.strays()]
        missing = write(standing, out, [*withdrawn.values()], readme, rows.keys() - closed)
    for line in (*(f"left out: {stray}" for stray in left_out), missing):
        if line:
            typer.echo(printable(line), err=True)
    count = "1 row" if len(standing) == 1 else f"{len(standing)} rows"
    typer.echo(f"{count}: {(out / 'leaderboard.html').resolve()}")


@app.command()
def withdraw(
    result: _ResultArgument, reason: Annotated[str, typer.Option(help="Why; the record keeps it.")]
) -> None:
    """Withdraws a row from the ranking; its file is kept, and the reason is written to the folder's record.

    Example: `fedbandit leaderboard withdraw results/*.silent.LinUCB.json --reason wrong`
    """
    with terminal.explained(ResultError, RecordError, OSError):
        loaded = ResultFile.load(result)
        Records(result.parent).take_out(loaded, reason)
    typer.echo(f"withdrawn: {loaded.entry.name} on {loaded.track} of {loaded.suite}")


def _is_published(suite: Suite, edition: str | None, new_edition: bool) -> bool:
    """Returns whether the options ask for the published edition of a suite.

    Raises:
        ValueError: The option has another value, or contradicts the other option, or there is no such edition.
    """
    if edition is None:
        return False
    require_choice("--edition", edition, ("published",))
    if new_edition:
        raise ValueError("--new-edition and --edition published are given; only one of them is allowed")
    newest_published(suite)
    return True


def _play(
    rows: Sequence[engine.Row], out: Path, backend: Backend, new_edition: bool, published: bool
) -> None:
    """Plays leaderboard rows with a progress bar; prints a table of their regret and of the files written.

    Args:
        rows: Rows of one suite.
        out: Folder of the results and their record.
        backend: The processes or the Dask cluster that play.
        new_edition: Whether to draw new random numbers, in place of those of the folder's latest edition.
        published: Whether to play the published edition.
    """
    with terminal.explained(ending=_REFUSALS):
        with terminal.explained(OSError, option="--out"):
            edition = Records(out).edition(rows[0].suite, new_edition, published)
        files = engine.run(rows, edition, out, partial(terminal.play_missing, rows[0].suite.name, backend))
    cells = []
    for row, file in zip(rows, files, strict=True):
        last = [
            f"{task.task.removeprefix(f'{row.suite.name}/')} {sum(task.regret[-1]) / len(task.seeds):,.1f}"
            for task in ResultFile.load(file).tasks
        ]
        cells.append((row.track.name, row.entry.name, ", ".join(last), file.name))
    heads = ("track", "entry", "regret per agent, by task", "file")
    terminal.print_table(f"edition {edition.edition.id}" + ", open" * published, heads, cells)


def _name(policy: str, given: str | None) -> str:
    """Returns the name of a submission, by default that of its class or file.

    Raises:
        ValueError: The name has characters that are not allowed, or is the name of a baseline.
    """
    place, _, attribute = policy.rpartition(":")
    default = attribute if place else Path(policy).stem
    name = default if given is None else given
    if not _NAME.fullmatch(name):
        raise ValueError(f"name is {name!r}; up to 100 letters, digits and any of ._+- are required")
    if name in BASELINES:
        raise ValueError(f"name is {name!r}, which is a baseline's; another one is required")
    return name


def _settings(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    settings: dict[str, dict[str, Any]] = {}
    for key, value in read_assignments(words).items():
        part, _, name = key.rpartition(".")
        if not part:
            raise ValueError(f"--set {key}={value} is not part.key=value")
        settings.setdefault(part, {})[name] = value
    return settings
