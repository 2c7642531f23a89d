"""Plays shards on a backend and keeps each as soon as it is done."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from traceback import format_exc
from typing import Any
from uuid import uuid4

from joblib import delayed

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.runs.backends import Backend, BackendError, Local
from fedbandit_envs.leaderboard.runs.progress import progress_file, shard_progress
from fedbandit_envs.leaderboard.runs.shard_lock import ShardLock, remove_strays
from fedbandit_envs.leaderboard.runs.store import Cell, is_kept, packed, path

_SECONDS = 0.5


def play(
    cells: Sequence[Cell],
    folder: Path,
    backend: Backend | None = None,
    advance: Callable[[float], None] = lambda played: None,
) -> None:
    """Runs the shards that have no result file in the folder yet; may be killed at any moment, and called again.

    Several processes may do so on one folder at once: they share the shards, and each waits for those that others
    play. An error in a shard is raised after the shards that are being played are done and kept.

    Args:
        cells: The runs, each of which is split into shards (some of its seeds).
        folder: Where the shards' files go; made if needed.
        backend: Where to play; if None, in this process.
        advance: Called with the agent-rounds played since its last call, about twice a second, from a separate thread.

    Raises:
        BackendError: Shards cannot be played there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_strays(folder)
    shards = {path(shard, folder): shard for cell in cells for shard in cell.split()}
    if not shards:
        return
    # The locked file is never written; only its partial file exists, which is removed like those of shards.
    while not (own := ShardLock.take(folder.resolve() / f"progress-{uuid4().hex[:20]}")):
        pass
    locks = {own.partial: own}
    try:
        with progress_file(own.partial, len(shards), advance) as played:
            numbered = {file: (number, shard) for number, (file, shard) in enumerate(shards.items())}
            sweep = _Sweep(numbered, own.partial, played, locks)
            left = list(shards)
            while left := sweep.play(left, backend or Local()):
                sleep(_SECONDS)
    finally:
        for lock in list(locks.values()):
            lock.give_up()


@dataclass
class _Sweep:
    """Shards by their files, and the locks of those that this process has played.

    Attributes:
        shards: Number and shard.
        progress: The progress file.
        played: What has been played of each shard, by its number.
        locks: Locks that this process holds, by the file.
        errors: What went wrong.
    """

    shards: dict[Path, tuple[int, Cell]]
    progress: Path
    played: Array
    locks: dict[Path, ShardLock]
    errors: list[Exception] = field(default_factory=list)

    def play(self, files: Sequence[Path], backend: Backend) -> list[Path]:
        """Plays the shards that nobody else has locked, and returns the files of the others."""
        busy: list[Path] = []
        with closing(backend.run(self._tasks(files, busy))) as results:
            for file, content in results:
                if isinstance(content, Exception):
                    self.errors.append(content)
                else:
                    self.locks.pop(file).write(content)
                    self._done(file)
        if self.errors:
            raise self.errors[0]
        return busy

    def _tasks(self, files: Sequence[Path], busy: list[Path]) -> Iterator[Any]:
        """Yields the shards to play, each once it is locked; after an error none."""
        for file in files:
            if self.errors:
                return
            lock = ShardLock.take(file)
            if lock is None:
                busy.append(file)
            elif is_kept(file):
                lock.give_up()
                self._done(file)
            else:
                self.locks[file] = lock
                number, shard = self.shards[file]
                yield delayed(_played)(shard, file, self.progress, number)

    def _done(self, file: Path) -> None:
        number, shard = self.shards[file]
        self.played[number] = shard.size


def _played(shard: Cell, file: Path, progress: Path, number: int) -> tuple[Path, bytes | Exception]:
    """Plays a shard, perhaps in another process or on another machine.

    Returns:
        The file, and its content or what went wrong: an error raised here would end what others are playing.
    """
    try:
        if path(shard, file.parent) != file:
            raise BackendError(
                "a worker has another source of fedbandit-envs than this process, so that its results would be others; "
                "start it again with the same one"
            )
        return file, packed(shard.play(shard_progress(progress, number)), file.stem)
    except Exception as error:
        error.add_note(f"While a shard was played:\n{format_exc()}")
        return file, error
