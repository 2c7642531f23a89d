"""Plays shards on a backend and keeps each as soon as it is done."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from time import sleep
from traceback import format_exc
from typing import Any

from joblib import delayed

from fedbandit_envs.leaderboard.runs.backends import Backend, BackendError, Local
from fedbandit_envs.leaderboard.runs.shard_lock import ShardLock, progress_of, remove_strays
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
    sweep = _Sweep({path(shard, folder): shard for cell in cells for shard in cell.split()})
    try:
        with sweep.reporting(advance):
            while sweep.left:
                sweep.play(backend or Local())
                if sweep.left:
                    sleep(_SECONDS)
    finally:
        for lock in sweep.locks.values():
            lock.give_up()


class _Sweep:
    """Shards by their files, and the locks on those that this process plays.

    Attributes:
        left: The shards that have no file yet.
        locks: Locks that this process holds, by the file.
    """

    def __init__(self, shards: dict[Path, Cell]) -> None:
        """Begins with all shards to play."""
        self.left = shards
        self.locks: dict[Path, ShardLock] = {}
        self._sizes = {file: shard.size for file, shard in shards.items()}
        self._errors: list[Exception] = []

    def play(self, backend: Backend) -> None:
        """Plays the shards that no other process has locked."""
        with closing(backend.run(self._tasks())) as results:
            for file, content in results:
                if isinstance(content, Exception):
                    self._errors.append(content)
                else:
                    self.locks.pop(file).write(content)
                    del self.left[file]
        if self._errors:
            raise self._errors[0]

    def _tasks(self) -> Iterator[Any]:
        """Yields the shards to play, each once it is locked; after an error none."""
        for file, shard in list(self.left.items()):
            if self._errors:
                return
            lock = ShardLock.take(file)
            if lock and is_kept(file):
                lock.give_up()
                del self.left[file]
            elif lock:
                self.locks[file] = lock
                yield delayed(_played)(shard, file)

    @contextmanager
    def reporting(self, advance: Callable[[float], None]) -> Iterator[None]:
        """Calls ``advance`` from a thread, twice a second, with what was played since its last call."""
        over = Event()

        def report() -> None:
            reported, ended = 0.0, False
            while not ended:
                ended = over.wait(_SECONDS)
                # Less than before, where a shard was begun again.
                if (now := self._played()) > reported:
                    advance(now - reported)
                    reported = now

        thread = Thread(target=report, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _played(self) -> float:
        """Returns the agent-rounds that have been played."""
        done = sum(size for file, size in self._sizes.items() if file not in self.left)
        return done + sum(lock.played for lock in list(self.locks.values()))


def _played(shard: Cell, file: Path) -> tuple[Path, bytes | Exception]:
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
        return file, packed(shard.play(progress_of(file)), file.stem)
    except Exception as error:
        error.add_note(f"While a shard was played:\n{format_exc()}")
        return file, error
