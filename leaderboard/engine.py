"""Plays entries on a suite, writes their result files, and records them as rows of the leaderboard."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path

from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.experiments import execute as sweep
from fedbandit_envs.experiments.store import Cell, Store
from fedbandit_envs.leaderboard.entries import baseline_entry, plugin_entry
from fedbandit_envs.leaderboard.locks import lock
from fedbandit_envs.leaderboard.plays import EntryRun
from fedbandit_envs.leaderboard.pooling import PooledRowsError, suspicion
from fedbandit_envs.leaderboard.privatizer_attack import PrivatizerAttack
from fedbandit_envs.leaderboard.provenance import machine, package
from fedbandit_envs.leaderboard.published import published_editions
from fedbandit_envs.leaderboard.records import EditionSecrets, RecordError, Records, evaluation_seeds
from fedbandit_envs.leaderboard.result import Edition, Entry, ResultFile
from fedbandit_envs.leaderboard.suites import Suite, Task
from fedbandit_envs.leaderboard.tracks import Track, TrackError
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import REGISTRY

SHARDS = ".shards"
SOURCES = "sources"

_COMMAND = ("fedbandit", "leaderboard")
# Number of rows (one agent in one replica) that are also played alone, to check that the policy uses no data of other
# rows: in each shard for baselines, which tests check as well, and in each replica for submissions. Where rows are
# played alone first, the number decides how small a gain in the other rows is found; see benchmarks/pooling_power.py.
_CHECKED_ROWS = 1
_ROWS_FIRST = 3


@dataclass(frozen=True)
class Row:
    """An entry of a suite on a track, which becomes a row of the leaderboard when it has been played.

    Attributes:
        suite: The suite of tasks that it plays.
        track: The track, whose limits it must keep.
        entry: The baseline or submission.
        code: File or entry point of a submission's code; empty for a baseline.
    """

    suite: Suite
    track: Track
    entry: Entry
    code: str = ""

    def runs(self, opened: EditionSecrets) -> list[EntryRun]:
        """Returns what has to be played for the row in an edition: one run for each task of the suite."""
        return [
            EntryRun(
                task=task,
                track=self.track,
                entry=self.entry,
                seeds=tuple(evaluation_seeds(self.suite, task, opened.edition)),
                noise_entropy=opened.entropy("noise", self.suite, self.track.name, self.entry, task),
                row_check_seed=opened.entropy("watch", self.suite, self.track.name, self.entry, task),
                checked_rows=_ROWS_FIRST
                if self.track.messages == 0 and self.entry.kind == "submission"
                else _CHECKED_ROWS,
                code=self.code,
            )
            for task in self.suite.tasks
        ]

    def trial_env(self, task: Task) -> FederatedEnv:
        """Returns the wrapped environment of one task, reset with one seed, as a trial of the entry's settings.

        Args:
            task: The task.

        Raises:
            TrackError: The entry sets an argument that the track fixes; or the track is private and the problem has no
                pairs of neighbouring histories, with which the privatizer could be audited.
            TypeError: A wrapper has no argument of a name that the entry sets.
            ValueError: An argument is out of its range.
        """
        problem = resolve(REGISTRY[task.env_id].federation)
        if self.track.private and not problem.neighbours(self.track.adjacency):
            raise TrackError(
                f"{problem.__name__}.neighbours({self.track.adjacency!r}) returns no histories; track "
                f"{self.track.name} requires some, by which privatizers are attacked"
            )
        env = EntryRun(task, self.track, self.entry, (0,), 2**127, 0, 0, self.code).stack()
        env.reset_batch([0])
        return env

    def try_out(self) -> None:
        """Builds the wrappers that the entry runs behind, so that wrong settings show before anything is played.

        Raises:
            TrackError: The entry sets an argument that the track fixes, or no privacy guarantee as strong as the track
                demands can be given for releases behind these wrappers.
            TypeError: A wrapper has no argument of a name that the entry sets.
            ValueError: An argument is out of its range.
        """
        self.track.check(self.trial_env(self.suite.tasks[0]))

    def file(self, opened: EditionSecrets) -> str:
        """Returns the name of the row's result file."""
        return f"{self.suite.name}.{opened.edition.id}.{self.track.name}.{self.entry.name}.json"

    def command(self, out: Path, edition: Edition) -> list[str]:
        """Returns the words of the command line that makes this row alone.

        Args:
            out: Folder of results. Only its name is part of the command, since its path may be private.
            edition: The edition; the command names it if it is published.
        """
        where = ["--suite", self.suite.name, "--track", self.track.name, "--out", out.name or "."]
        if edition in published_editions(self.suite):
            where += ["--edition", "published"]
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
    """Returns the rows to play for some baselines: one for each track on which a baseline belongs.

    Args:
        suite: The suite.
        names: Names of the baselines.
        tracks: The tracks to consider.

    Returns:
        The rows, and a mapping of the combinations that were left out: its keys have the form ``"name on track"``, its
        values say why the baseline, which belongs on that track, cannot play there.
    """
    rows, left_out = [], {}
    for track, name in product(tracks, names):
        if not belongs(name, suite, track):
            continue
        of_plugin = BASELINES.package(name) is not None
        task = suite.tasks[0]
        try:
            row = Row(suite, track, *(plugin_entry(name) if of_plugin else (baseline_entry(name),)))
            for task in suite.tasks:
                env = row.trial_env(task)
                if not of_plugin:
                    BASELINES[name].make_policy().reset(env.policy_spec, row_seeds([0], env.max_num_agents))
            rows.append(row)
        except (TrackError, UnfitError, ValueError) as error:
            left_out[f"{name} on {track.name}"] = f"{task.id}: {error}"
    return rows, left_out


def belongs(name: str, suite: Suite, track: Track) -> bool:
    """Returns whether a baseline belongs on a track of a suite of its problem, by its name."""
    baseline = BASELINES[name]
    if BASELINES.package(name):
        return _sends_as_allowed(track, baseline)
    return all(track.fits(baseline, task) for task in suite.tasks)


def _sends_as_allowed(track: Track, baseline: Baseline) -> bool:
    """Returns whether a baseline of another package belongs on a track.

    The names of its wrappers decide: one with a ``channel`` sends, and one with a ``privatizer`` adds noise to what it
    sends. Silent baselines belong on silent tracks, noisy ones on private tracks, the others on non-private tracks.
    """
    sends, private = "channel" in baseline.wrappers, "privatizer" in baseline.wrappers
    if track.revealed or sends == (track.epsilon == 0):
        return False
    return not sends or private == track.private


def run(
    rows: Sequence[Row],
    opened: EditionSecrets,
    out: Path,
    play: Callable[[Sequence[Cell], Path], None] = sweep.play,
) -> list[Path]:
    """Plays rows in an edition, writes their result files and records them.

    Shards (parts of a run, with some of its seeds) whose files an earlier call has written are not played again.

    Args:
        rows: The rows.
        opened: The edition and its secret.
        out: Folder of result files and of their record.
        play: Function that plays the shards of given runs and attacks which have no file in a given folder yet; by
            default in this process.

    Returns:
        Paths of the rows' result files.

    Raises:
        TrackError: A row violates a limit of its track.
        MixedRowsError: A policy's action for one agent depends on data of other agents or replicas.
        PooledRowsError: A policy has had less regret in rows that were not watched than in watched ones.
        EntryError: A submission fails or does something that is not allowed.
        BackendError: The processes or machines that should play cannot do so.
        RecordError: The edition already has a row with the same name but other code or settings, or another process
            plays the edition.
    """
    files = [out / row.file(opened) for row in rows]
    for row, file in zip(rows, files, strict=True):
        # The file's name has the entry's name in it: a second entry of that name would overwrite the first one's file.
        other = ResultFile.load(file).entry if file.exists() else row.entry
        if (other.source_digest, other.settings) != (row.entry.source_digest, row.entry.settings):
            raise RecordError(
                f"{file.name} is a row of other code or settings of that name; another name or edition is required"
            )
    runs = [run for row in rows for run in row.runs(opened)]
    attacks = [attack for attack in map(PrivatizerAttack.on, runs) if attack is not None]
    store = Store(out / SHARDS)
    with only_play_of(opened.edition, store.folder):
        # Rows of one replica that are played alone are played one after the other, in processes that have ended when
        # the next one begins.
        for number in range(_ROWS_FIRST):
            if first := [rows for run in runs for rows in run.rows_first()[number : number + 1]]:
                play(first, store.folder)
        shards = [shard for run in runs for shard in run.split()]
        play([*attacks, *(shard.after(store.load_shard) for shard in shards)], store.folder)
    for row, file in zip(rows, files, strict=True):
        Records(out).take_in(file, partial(_gathered, row, opened, out))
    return files


@contextmanager
def only_play_of(edition: Edition, folder: Path) -> Iterator[None]:
    """Keeps other processes from playing an edition inside of a ``with`` block; they could be channels between rows.

    It is a lock of the operating system, which ends with this process, however that ends.

    Args:
        edition: The edition.
        folder: Folder of the shards' files; made if it does not exist.

    Raises:
        RecordError: Another process plays the edition.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{edition.id}.lock").open("w") as file:
        try:
            lock(file, wait=False)
        except BlockingIOError as error:
            raise RecordError(
                f"edition {edition.id} is being played by another process, and one at a time may: wait until it has "
                "ended, or open another edition or folder for this one (--new-edition, --out)"
            ) from error
        yield


def _gathered(row: Row, opened: EditionSecrets, out: Path) -> ResultFile:
    """Returns a row's result, put together from the files of its shards and of the attack on its privatizer."""
    tasks, shards = [], Store(out / SHARDS)
    for run in row.runs(opened):
        attack, task = PrivatizerAttack.on(run), shards.load(run)
        tasks.append(task if attack is None else replace(task, audit=shards.load(attack)))
    if any(run.rows_first() for run in row.runs(opened)) and (why := suspicion(tasks)):
        raise PooledRowsError(f"{row.entry.name}, {why}")
    return ResultFile(
        suite=row.suite.name,
        suite_version=row.suite.version,
        edition=opened.edition,
        entry=row.entry,
        track=row.track.name,
        tasks=tasks,
        command=row.command(out, opened.edition),
        package=package() | ({"plugins": row.suite.packages} if row.suite.packages else {}),
        machine=machine(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    )
