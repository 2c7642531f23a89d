"""The commands ``leaderboard run``, ``submit``, ``verify`` and ``report``."""

import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedbandit_envs.cli import terminal

if TYPE_CHECKING:
    from fedbandit_envs.leaderboard.suites import Edition, Suite, Track
    from fedbandit_envs.leaderboard.table import Entry

_HELP = "Ranks policies by results that anybody can reproduce."
app = typer.Typer(cls=terminal.Commands, no_args_is_help=True, help=_HELP)

_SuiteOption = Annotated[str, typer.Option("--suite", help="linear-quick, arms, ... (errors list all).")]
_OutOption = Annotated[Path, typer.Option("--out", help="Folder of results.", file_okay=False)]
_PublishedOption = Annotated[
    bool, typer.Option("--published", help="Play the seeds of the published rows. Your row then has no rank.")
]


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
    scheduler: terminal.SchedulerOption = None,
    on_published: _PublishedOption = False,
    seeds: Annotated[int | None, typer.Option(help="Only the first seeds, at least 20.", min=1)] = None,
) -> None:
    """Runs baselines of a suite on the tracks that they fit.

    The same command goes on after a stop.

    Example: `fedbandit leaderboard run LinUCB --suite linear-quick --out results`
    """
    from fedbandit_envs.baselines import BASELINES
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.leaderboard import plays

    entries = []
    with terminal.explained(ValueError):
        played, opened, tracks = _opened(suite, out, on_published)
        known = plays.baselines_of(played)
        names = baselines or known
        for name in names:
            require_choice("BASELINE", name, known)
        unlimited = [name for name, one in tracks.items() if not one.messages]
        for one in [tracks[require_choice("track", name, tracks)] for name in track or unlimited]:
            for name in (name for name in names if one.fits(BASELINES[name], played)):
                try:
                    entries.append(plays.make_entry(played, opened, one, name))
                except ValueError as error:
                    typer.echo(f"left out: {name} on {one.name}: {error}", err=True)
        if not entries:
            raise ValueError(f"none of {', '.join(names)} fits {', '.join(track or tracks)}")
    # The seeds of a task follow from its place in the edition, not from their number.
    first = (replace(task, seeds=min(seeds or task.seeds, task.seeds)) for task in played.tasks)
    _play(replace(played, tasks=tuple(first)), opened, entries, out, workers, scheduler)


@app.command()
def submit(
    policy: Annotated[str, typer.Argument(help="`file.py:Class`.")],
    suite: _SuiteOption,
    track: Annotated[str, typer.Option(help="What it may send: silent, private-1, ... (errors list all).")],
    out: _OutOption,
    name: Annotated[str | None, typer.Option(help="Its name; by default the class's.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="{policy,channel,privatizer}.key=value. Repeatable.")
    ] = None,
    workers: terminal.WorkersOption = 2,
    scheduler: terminal.SchedulerOption = None,
    on_published: _PublishedOption = False,
) -> None:
    """Runs your own policy and adds its row to the ranking.

    It plays in a separate process that is sent observations only. The code can do what you can: read it before you run
    it.

    Example: `fedbandit leaderboard submit mine.py:Mine --suite linear-quick --track silent --out mine`
    """
    from fedbandit_envs.baselines import BASELINES
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.experiments.spec import read_assignments
    from fedbandit_envs.leaderboard import plays

    with terminal.explained(ValueError, TypeError, OSError):
        played, opened, tracks = _opened(suite, out, on_published)
        where = tracks[require_choice("track", track, tracks)]
        name = policy.rpartition(":")[2] if name is None else name
        if name in BASELINES or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", name):
            raise ValueError(f"name is {name!r}; letters, digits, ._+- and no baseline's name are required")
        settings: dict[str, dict[str, Any]] = {}
        for key, value in read_assignments(set_ or []).items():
            part, _, argument = key.rpartition(".")
            settings.setdefault(part, {})[argument] = value
        entry = plays.make_entry(played, opened, where, name, policy, settings)
    _play(played, opened, [entry], out, workers, scheduler)


@app.command()
def verify(
    results: Annotated[Path, typer.Argument(help="Folder of results.", file_okay=False)],
    suite: Annotated[str | None, typer.Option(help="Only rows of this suite.")] = None,
    track: Annotated[str | None, typer.Option(help="Only rows on this track.")] = None,
    entry: Annotated[str | None, typer.Option(help="Only rows of this entry.")] = None,
    seeds: Annotated[int, typer.Option(help="Most seeds of each task that are played again.", min=1)] = 2,
    in_bubblewrap: Annotated[
        bool, typer.Option("--isolated", help="Run each row's replay under bubblewrap: no network, no files.")
    ] = False,
) -> None:
    """Checks rows by playing them again, and says whether they hold.

    Exit code 1 if a number differs by more than rounding. A file's entry is a stranger's code: read it first, and use
    `--isolated` or a container.

    Example: `fedbandit leaderboard verify results --entry LinUCB --track silent`
    """
    from fedbandit_envs.leaderboard import plays
    from fedbandit_envs.leaderboard.table import ResultTable

    with terminal.explained(ValueError, OSError):
        table = ResultTable.load(results)
        asked = {key: one for key, one in {"suite": suite, "track": track, "entry": entry}.items() if one}
        rows = [row for row in table.entries if asked.items() <= row._asdict().items()]
        if not rows:
            raise ValueError(f"{results} has no rows of {asked}")
    refuted = 0
    with terminal.explained(ending=[OSError]):
        for row in rows:
            if in_bubblewrap:
                # Each row has files of its own, so that what is played again leaves nothing for another row.
                words = [*plays.isolated(results), sys.executable, "-m", "fedbandit_envs", "leaderboard"]
                words += ["verify", str(results.resolve()), "--seeds", str(seeds)]
                words += ["--suite", row.suite, "--track", row.track, "--entry", row.entry]
                refuted += subprocess.run(words).returncode != 0
                continue
            typer.echo(" ".join(row))
            try:
                for found in plays.verify(table, row, seeds):
                    typer.echo(f"  {found}")
            except OSError:
                raise
            except Exception as error:
                typer.echo(f"  REFUTED: {type(error).__name__}: {error}")
                refuted += 1
    verdict = f"{refuted} of {len(rows)} rows refuted" if refuted else f"all of {len(rows)} rows hold"
    typer.echo(f"Verdict: {verdict}.")
    raise typer.Exit(1 if refuted else 0)


@app.command()
def report(
    results: Annotated[list[Path], typer.Option(help="Folder of results. Repeatable.")],
    out: Annotated[Path, typer.Option(help="Folder for the report.", file_okay=False)],
) -> None:
    """Writes the ranking of all results: `leaderboard.md` and, with the extra `[report]`, `leaderboard.png`.

    Example: `fedbandit leaderboard report --results results --out report`
    """
    from fedbandit_envs.leaderboard.report import report as write
    from fedbandit_envs.leaderboard.suites import BoardError
    from fedbandit_envs.leaderboard.table import ResultTable

    with terminal.explained(ValueError, OSError):
        table = ResultTable()
        for folder in results:
            try:
                table.add(ResultTable.load(folder))
            except (BoardError, OSError) as error:
                typer.echo(f"left out: {error}", err=True)
        left = write(table, out)
    if left:
        typer.echo(f"left out: {left}", err=True)
    typer.echo(f"{len(table.lines)} rows: {(out / 'leaderboard.md').resolve()}")


def _opened(name: str, out: Path, on_published: bool) -> tuple["Suite", "Edition", dict[str, "Track"]]:
    """Returns a suite, an edition of it and its tracks, by name.

    The edition is the newest published one, or else the latest one of the folder's own, or a new one.
    """
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.leaderboard.suites import SUITES, Edition, published, tracks_of
    from fedbandit_envs.leaderboard.table import ResultTable

    suite = SUITES[require_choice("suite", name, SUITES)]
    public, tracks = published(suite), tracks_of(suite)
    if on_published:
        if not public:
            raise ValueError(f"--published: no edition of {name} {suite.version} is published")
        return suite, public[-1], tracks
    known = ResultTable.load(out, new=True).editions.values()
    own = [one for one in known if one.digest == suite.digest and one not in public]
    return suite, own[-1] if own else Edition.draw(suite), tracks


def _play(
    suite: "Suite", edition: "Edition", entries: list["Entry"], out: Path, workers: int, scheduler: str | None
) -> None:
    """Plays entries of one suite with a progress bar, and prints their regret."""
    from fedbandit_envs.leaderboard import plays
    from fedbandit_envs.leaderboard.suites import BoardError

    with terminal.explained_play(out), terminal.explained(ending=[BoardError]):
        play = partial(terminal.play_missing, suite.name, workers=workers, scheduler=scheduler)
        table = plays.run(suite, edition, entries, out, play)
    typer.echo(f"edition {edition.id}, regret per agent:")
    for entry in entries:
        typer.echo(f"{entry.track} {entry.name}")
        for task in suite.tasks:
            own = [line.regret for line in table.lines[entry.row] if line.task == task.id]
            typer.echo(f"  {task.id} {sum(own) / len(own):,.1f}")
