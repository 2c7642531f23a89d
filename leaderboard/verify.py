"""Verification: plays chosen runs of a table again, and compares every number to the last bit.

All numbers of a run follow from its seed and from the entry's noise. So a random sample of seeds, unknown in advance,
is played again at a fraction of the cost. If the numbers of one seed in n were changed, playing k of them finds it with
probability k/n, and playing all of them always does.

The policy of a file is played in other ways than it was: in the replay each agent has a process of its own, which sees
no other agent. Before that, where agents send nothing, one agent plays its episodes alone, in an empty folder, so that
nothing exists yet that it could have been told.
"""

import secrets
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.experiments.store import source_digest
from fedbandit_envs.leaderboard.plays import Play, plays_of
from fedbandit_envs.leaderboard.process import FilePolicy
from fedbandit_envs.leaderboard.ranking import in_order
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.table import Line, ResultTable, Row, TableError
from fedbandit_envs.leaderboard.tracks import tracks_of
from fedbandit_envs.registry.registration import REGISTRY


class Finding(NamedTuple):
    """The outcome of one check.

    Attributes:
        what: Name of the check.
        holds: Whether the check was passed; None if its outcome is only information.
        detail: What was found, as text.
    """

    what: str
    holds: bool | None
    detail: str


def verify(table: ResultTable, folder: Path, row: Row, seeds: int | None = 2) -> Iterator[Finding]:
    """Verifies a row of a table; nothing is played if a check before it fails.

    Args:
        table: The results.
        folder: Their folder, which has copies of the entries' files.
        row: The row.
        seeds: Number of seeds of each task that are played again; None for all.

    Yields:
        The outcome of each check, as soon as it is made.

    Raises:
        OSError: A file cannot be read, or the machine fails in another way, which says nothing about the row.
    """
    edition, entry = table.editions.get(row.edition), table.entries[row]
    suite = SUITES.get(row.suite)
    if (
        suite is None
        or edition is None
        or suite.digest != edition.digest
        or row.track not in tracks_of(suite)
    ):
        yield Finding("suite", False, f"{row.suite}, edition {row.edition}, track {row.track} is unknown")
        return
    try:
        lines = in_order(edition, table.lines.get(row, []))
        plays = plays_of(suite, edition, entry, table.kept_file(folder, entry))
        # Entries that have no such baseline, or settings which the track does not allow, fail here.
        _ = [play.stack() for play in plays]
    except (TableError, ValueError, TypeError, KeyError) as error:
        yield Finding("entry", False, str(error))
        return
    yield Finding("entry", True, f"{entry.source}, {len(lines)} runs of edition {edition.id}")
    if entry.is_open:
        yield Finding("open", None, "the seeds were public before the entry played")
    if not entry.is_file and entry.digest != source_digest():
        yield Finding("sources", None, "this package has other sources than played; the numbers decide")
    for play in plays:
        yield _replayed(play, [line for line in lines if line.task == play.task.id], seeds)


def _replayed(play: Play, recorded: list[Line], seeds: int | None) -> Finding:
    """Plays a task again under a random sample of its seeds, and compares the numbers."""
    count = len(play.seeds)
    chosen = sorted(secrets.SystemRandom().sample(range(count), min(seeds or count, count)))
    again = replace(play, seeds=tuple(play.seeds[number] for number in chosen))
    what = f"replay of {play.task.id}"
    try:
        played = _apart(again) if play.entry.is_file else again.join([part.play() for part in again.split()])
    except OSError:
        raise
    except Exception as error:
        # An entry may raise any error in the replay; in each case its numbers could not be reproduced.
        return Finding(what, False, f"{type(error).__name__}: {error}")
    wrong = next(
        filter(None, (_difference(new, recorded[at]) for new, at in zip(played, chosen, strict=True))), ""
    )
    return Finding(what, not wrong, wrong or f"{len(chosen)} of {count} seeds give the same numbers")


def _apart(play: Play) -> list[Line]:
    """Plays an entry's file with a process for each agent, after one agent has played alone where none sends.

    Raises:
        TableError: The agent that has played alone did not do the same among the others.
    """
    made = (play.code, play.entry.source.rpartition(":")[2], play.entry.settings.get("policy", {}))
    parts = []
    for part in play.split():
        alone, agent = None, secrets.randbelow(part.agents)
        # If agents hear or affect each other, what one sees depends on what the others do.
        if part.track.messages == 0 and not resolve(REGISTRY[part.task.env_id].federation).interacting:
            alone = part.play(policy=FilePolicy(*made, agents=[agent]))
        parts.append(part.play(policy=FilePolicy(*made, agents=range(part.agents))))
        if alone is not None and (alone["regret"] != parts[-1]["regret"])[:, agent].any():
            raise TableError(
                f"agent {agent} acts otherwise when it plays before the others; it uses what they leave"
            )
    return play.join(parts)


def _difference(played: Line, recorded: Line) -> str:
    """Returns a description of the first difference between a replay and the recorded run; empty if they agree."""
    for name in ("regret", "half", "messages", "bytes", "delta"):
        new, old = getattr(played, name), getattr(recorded, name)
        if new != old and old is not None:
            return f"{name}, seed {played.seed}: {old} is recorded; {new} comes about"
    # The recorded epsilon is the largest one over all seeds, so it may be larger than that of the chosen ones.
    unknown = played.epsilon != played.epsilon and recorded.epsilon != recorded.epsilon
    if not unknown and not played.epsilon <= recorded.epsilon:
        return f"epsilon {recorded.epsilon} is recorded; {played.epsilon} comes about"
    return ""


def isolated(folder: Path) -> list[str]:
    """Returns the words of a command line that run the words behind them under bubblewrap.

    They have no network, see no other process, and can write only to ``/tmp``, which is empty at first: temporary files
    and compiled kernels go there. The home folder is empty, too, apart from Python, this package and the results.

    Args:
        folder: Folder of results.

    Raises:
        FileNotFoundError: There is no bubblewrap on this machine.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise FileNotFoundError("--isolated needs the program bwrap (bubblewrap), which this machine lacks")
    package = Path(str(files("fedbandit_envs"))).parent
    seen = [sys.prefix, sys.base_prefix, *filter(None, sys.path), str(package), str(folder.resolve())]
    return [
        *(program, "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"),
        *(word for hidden in ("/tmp", "/var/tmp", str(Path.home())) for word in ("--tmpfs", hidden)),
        *(word for path in dict.fromkeys(seen) if Path(path).exists() for word in ("--ro-bind", path, path)),
        *("--dev", "/dev", "--proc", "/proc", "--chdir", "/tmp"),
        *(
            "--setenv",
            "NUMBA_CACHE_DIR",
            "/tmp/kernels",
            "--setenv",
            "TMPDIR",
            "/tmp",
            "--setenv",
            "HOME",
            "/tmp",
        ),
    ]
