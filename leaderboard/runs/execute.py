"""Plays shards, on processes of this machine or the workers of a Dask scheduler, and keeps each when it is done."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from time import sleep
from traceback import format_exc
from typing import Any

from joblib import Parallel, delayed

from fedbandit_envs.leaderboard.runs.store import Cell, ShardLock, Store

_SECONDS = 0.5
_TIMEOUT = 10  # seconds

Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A call, as :func:`joblib.delayed` makes it."""


class BackendError(RuntimeError):
    """A backend cannot play shards; the message has the reason."""


@dataclass(frozen=True)
class Local:
    """Processes of this machine.

    Attributes:
        jobs: Number of processes; one is this process itself.
    """

    jobs: int = 1

    def run(self, tasks: Iterable[Task]) -> Generator[Any, None, None]:
        """Yields results in the order in which tasks are done.

        Args:
            tasks: Calls; each is taken when a process is free for it.

        Raises:
            BackendError: A process has died.
        """
        # One shard per task, so that each is stored as soon as it is done; worker processes end when this process ends.
        parallel = Parallel(
            self.jobs,
            batch_size=1,
            pre_dispatch="n_jobs",
            return_as="generator_unordered",
            initializer=_end_with,
            initargs=(os.getpid(),),
        )
        try:
            yield from parallel(tasks)
        except BrokenProcessPool as error:
            raise BackendError(
                f"a process that played has been ended; what is finished is kept, so start again: {error}"
            ) from error


def _end_with(parent: int) -> None:
    """Lets this process end soon after its parent, which may be killed."""

    def watch() -> None:
        while os.getppid() == parent:
            sleep(_SECONDS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class Dask:
    """Workers of a Dask scheduler; they may come and go, and a dead worker's task is given to another.

    Attributes:
        scheduler: Its address, ``tcp://host:port``.
    """

    scheduler: str

    def run(self, tasks: Iterable[Task]) -> Generator[Any, None, None]:
        """Yields results in the order in which tasks are done.

        Args:
            tasks: Calls; each is taken when a worker is free for it.

        Raises:
            BackendError: No worker can be reached, or a task has ended several workers.
        """
        try:
            from distributed import Client, KilledWorker, as_completed
        except ImportError as error:
            raise BackendError(
                "backend is 'dask', which needs the [dask] extra: python -m pip install 'fedbandit-envs[dask]'"
            ) from error
        try:
            client = Client(self.scheduler, timeout=_TIMEOUT, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise BackendError(
                f"scheduler is {self.scheduler!r}, where none answers as tcp://HOST:PORT: {error}"
            ) from error
        with closing(client):
            try:
                client.wait_for_workers(1, timeout=_TIMEOUT)
            except TimeoutError as error:
                raise BackendError(f"the scheduler at {self.scheduler} has no workers") from error
            left, running = iter(tasks), as_completed([], loop=client.loop)

            def submit() -> None:
                # As many tasks wait at the scheduler as are played, so that no worker has to wait.
                room = 2 * sum(client.ncores().values()) - running.count()
                for function, arguments, named in islice(left, max(1, room)):
                    running.add(client.submit(function, *arguments, **named, pure=False))

            submit()
            for played in running:
                try:
                    yield played.result()
                except KilledWorker as error:
                    raise BackendError(f"a shard ends whoever plays it: {error}") from error
                submit()


Backend = Local | Dask
"""Plays shards."""


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
    store = Store(folder)
    store.remove_strays()
    sweep = _Sweep(store.shards(cells))
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
            if lock and Store.has(file):
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
        if Store(file.parent).path(shard) != file:
            raise BackendError(
                "a worker has another source of fedbandit-envs than this process, so that its results would be others; "
                "start it again with the same one"
            )
        return file, Store.content(shard.play(ShardLock.progress(file)), file)
    except Exception as error:
        error.add_note(f"While a shard was played:\n{format_exc()}")
        return file, error
