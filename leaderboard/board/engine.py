"""Runs entries of a suite: plays in a sweep that can be stopped and started again, results in files, rows on record."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.board.audits import attack_on
from fedbandit_envs.leaderboard.board.editions import Opened, as_hex, evaluation_seeds
from fedbandit_envs.leaderboard.board.entries import as_read, baseline_entry
from fedbandit_envs.leaderboard.board.plays import Play, Played
from fedbandit_envs.leaderboard.board.provenance import machine, package
from fedbandit_envs.leaderboard.board.records import RecordError, Records
from fedbandit_envs.leaderboard.board.result import Entry, Result, TaskResult
from fedbandit_envs.leaderboard.board.suites import Suite, Task
from fedbandit_envs.leaderboard.board.tracks import Track, TrackError
from fedbandit_envs.leaderboard.sweep import engine as sweep
from fedbandit_envs.leaderboard.sweep import store
from fedbandit_envs.leaderboard.sweep.backends import Backend
from fedbandit_envs.leaderboard.sweep.cell import Cell
from fedbandit_envs.streams import row_seeds
from fedbandit_envs.wrapper import find_layer

SHARDS = ".shards"
SOURCES = "sources"

# Baselines are held to it by tests as well.
_COMMAND = ("fedbandit", "leaderboard")
_WATCHED = {"baseline": 1, "submission": 3}


@dataclass(frozen=True)
class Row:
    """What is to become a row: an entry of a suite on a track.

    Attributes:
        suite: The suite.
        track: The track.
        entry: The entry.
        code: Where a submission's code is; empty for a baseline.
    """

    suite: Suite
    track: Track
    entry: Entry
    code: str = ""

    def plays(self, opened: Opened) -> list[Play]:
        """Returns the row's plays in an edition, one a task."""
        return [
            Play(
                task=task,
                track=self.track,
                entry=self.entry,
                seeds=tuple(evaluation_seeds(self.suite, task, opened.edition)),
                noise=opened.entropy("noise", self.suite, self.track.name, self.entry, task),
                watch=opened.entropy("watch", self.suite, self.track.name, self.entry, task),
                watched=_WATCHED[self.entry.kind],
                code=self.code,
            )
            for task in self.suite.tasks
        ]

    def file(self, opened: Opened) -> str:
        """Returns the name of its result's file."""
        return f"{self.suite.name}.{opened.edition.id}.{self.track.name}.{self.entry.name}.json"

    def command(self, out: Path) -> list[str]:
        """Returns what makes this row alone, with folders by their last name: where they lie is nobody's business."""
        where = ["--suite", self.suite.name, "--track", self.track.name, "--out", out.name or "."]
        if self.entry.kind == "baseline":
            return [*_COMMAND, "run", self.entry.source, *where]
        settings = [
            word
            for part, arguments in self.entry.settings.items()
            for name, value in arguments.items()
            for word in ("--set", f"{part}.{name}={json.dumps(value)}")
        ]
        return [*_COMMAND, "submit", self.entry.source, "--name", self.entry.name, *where, *settings]


def rows_of(suite: Suite, names: Iterable[str], tracks: Iterable[Track]) -> tuple[list[Row], dict[str, str]]:
    """Returns the rows of baselines on the tracks that they fit.

    Args:
        suite: The suite.
        names: Baselines.
        tracks: Tracks that are asked for.

    Returns:
        The rows, and of baselines that fit a track but cannot play there why, by ``"name on track"``.
    """
    rows, left_out = [], {}
    for track in tracks:
        for name in names:
            if all(track.fits(BASELINES[name], task) for task in suite.tasks):
                row = Row(suite, track, baseline_entry(name))
                if why := _unplayable(row):
                    left_out[f"{name} on {track.name}"] = why
                else:
                    rows.append(row)
    return rows, left_out


def try_out(row: Row) -> None:
    """Builds the wrappers that an entry would run behind, so that wrong settings show before anything is played.

    Raises:
        TrackError: A setting is the track's, or nothing could be claimed of what they let out.
        TypeError: There is no such setting.
        ValueError: A setting is out of its range.
    """
    any_secret = 2**127
    env = Play(
        task=row.suite.tasks[0],
        track=row.track,
        entry=row.entry,
        seeds=(0,),
        noise=any_secret,
        watch=0,
        watched=0,
        code=row.code,
    ).stack()
    env.reset_batch([0])
    row.track.check(env)


def _unplayable(row: Row) -> str:
    """Says why a baseline cannot play; empty if it can."""
    for task in row.suite.tasks:
        play = Play(task=task, track=row.track, entry=row.entry, seeds=(0,), noise=0, watch=0, watched=0)
        try:
            env = play.stack()
            env.reset_batch(play.seeds)
            policy = BASELINES[row.entry.source].make_policy()
            policy.reset(env.policy_spaces, row_seeds(play.seeds, env.max_num_agents))
        except (TrackError, UnfitError, ValueError) as error:
            return f"{task.id}: {error}"
    return ""


def run(
    rows: Sequence[Row],
    opened: Opened,
    out: Path,
    backend: Backend | None = None,
    advance: Callable[[float], None] = lambda played: None,
) -> list[Path]:
    """Plays rows in an edition and takes them in; what was played before is not played again.

    Args:
        rows: The rows.
        opened: The edition.
        out: Folder of results and their record.
        backend: Where to play; if None, in this process.
        advance: Told of agent-rounds played.

    Returns:
        The results' files.

    Raises:
        TrackError: A row does not keep what its track demands.
        MixedRowsError: A policy mixes rows.
        EntryError: A submission breaks.
        BackendError: Nothing can be played there.
        RecordError: The edition has a row of another entry of the same name.
    """
    out.mkdir(parents=True, exist_ok=True)
    records = Records(out)
    for row in rows:
        _refuse_namesake(row, out / row.file(opened))
    sweep.play(_shards(rows, opened), out / SHARDS, backend, advance)
    made = []
    for row in rows:
        file = out / row.file(opened)
        records.take_in(file, partial(gathered, row, opened, out))
        made.append(file)
    return made


def _refuse_namesake(row: Row, file: Path) -> None:
    """Refuses an entry whose name is another's: their rows would have one file."""
    if not file.exists():
        return
    other = Result.load(file).entry
    if other.source_digest != row.entry.source_digest or other.settings != as_read(row.entry).settings:
        raise RecordError(
            f"{file.name} is a row of other code or settings of that name; another name or edition is required"
        )


def unplayed(rows: Sequence[Row], opened: Opened, out: Path) -> float:
    """Returns how many agent-rounds are still to be played."""
    return sum(shard.size for shard in store.missing_shards(_shards(rows, opened), out / SHARDS))


def _shards(rows: Sequence[Row], opened: Opened) -> list[Cell]:
    """Returns all that has to be played: entries' plays, and attacks on what they ran behind."""
    plays = [play for row in rows for play in row.plays(opened)]
    attacks = [attack for attack in map(attack_on, plays) if attack is not None]
    return [*attacks, *(shard for play in plays for shard in play.split())]


def gathered(row: Row, opened: Opened, out: Path) -> Result:
    """Puts a row's result together from its shards."""
    return Result(
        suite=row.suite.name,
        suite_version=row.suite.version,
        edition=opened.edition,
        entry=row.entry,
        track=row.track.name,
        tasks=[
            _task_result(task, play, out / SHARDS)
            for task, play in zip(row.suite.tasks, row.plays(opened), strict=True)
        ],
        command=row.command(out),
        package=package(),
        machine=machine(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _task_result(task: Task, play: Play, shards: Path) -> TaskResult:
    """Puts a task's part of a result together, with digests."""
    played: Played = store.load(play.split(), shards)
    attacked = attack_on(play)
    noisy = find_layer(play.stack(), "noise") is not None
    result = TaskResult(
        task=task.id,
        digest=task.digest,
        rounds=played.rounds,
        regret=played.regret,
        extra=played.extra,
        messages=played.messages,
        bytes=played.bytes,
        claims=played.claims,
        audit=None if attacked is None else store.load([attacked], shards),
        seeds=[as_hex(seed) for seed in play.seeds],
        noise_entropy=as_hex(play.noise) if noisy else None,
        replayed_rows=played.replayed_rows,
        confined=played.confined,
        cpu_seconds=played.cpu_seconds,
    )
    return replace(result, arrays_digest=result.digest_of_arrays())
