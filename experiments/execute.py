"""Plays shards of runs, in processes of this machine or on workers of a Dask scheduler.

A shard is a part of a run, with some of its seeds. Its result is written to a file as soon as it has been played.
"""

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

from fedbandit_envs.experiments.store import Cell, ShardLock, Store

_SECONDS = 0.5
_TIMEOUT = 10  # seconds

Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function call to be made later, from :func:`joblib.delayed`: function, positional and keyword arguments."""


class BackendError(RuntimeError):
    """Processes or machines that should play shards cannot do so; the message has the reason."""


@dataclass(frozen=True)
class Local:
    """A backend that plays shards in processes of this machine.

    Attributes:
        jobs: Number of processes; with 1 shards are played in this process itself.
    """

    jobs: int = 1

    def run(self, tasks: Iterable[Task]) -> Generator[Any, None, None]:
        """Makes function calls in parallel, and yields what they return, in the order in which they end.

        Args:
            tasks: The calls; the next one is taken from the iterable when a process is free for it.

        Raises:
            BackendError: A process has died.
        """
        # Calls are not batched, so that each shard is stored as soon as it has been played. The initializer makes
        # worker processes end when this process ends.
        parallel = Parallel(
            self.jobs,
            batch_size=1,
            pre_dispatch="n_jobs",
            return_as="generator_unordered",
            initializer=_end_with,
            initargs=(os.getpid(),),
        )
        try:
            # Processes are used again, also after this one has gone to another folder.
            yield from parallel(delayed(_in_folder)(os.getcwd(), *task) for task in tasks)
        except BrokenProcessPool as error:
            raise BackendError(
                f"a process that played has been ended; what is finished is kept, so start again: {error}"
            ) from error


def _in_folder(folder: str, function: Callable[..., Any], arguments: Any, named: Any) -> Any:
    """Calls a function while ``folder`` is the working directory of this process."""
    os.chdir(folder)
    return function(*arguments, **named)


def _end_with(parent: int) -> None:
    """Makes this process end within a second after its parent process has ended, even if the parent was killed.

    Args:
        parent: Id of the parent process.
    """

    def watch() -> None:
        while os.getppid() == parent:
            sleep(_SECONDS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class Dask:
    """A backend that plays shards on the workers of a Dask scheduler.

    Workers may come and go; the shard of a worker that has died is given to another one.

    Attributes:
        scheduler: Address of the scheduler, ``tcp://host:port``.
    """

    scheduler: str

    def run(self, tasks: Iterable[Task]) -> Generator[Any, None, None]:
        """Makes function calls on the workers, and yields what they return, in the order in which they end.

        Args:
            tasks: The calls; the next one is taken from the iterable when a worker can take it.

        Raises:
            BackendError: No worker can be reached, or several workers have died while they made the same call.
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
                # Twice as many calls as there are cores are submitted: one per core runs and one waits at the
                # scheduler, so that no worker is idle.
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
"""Where shards are played: in processes of this machine, or on the workers of a Dask scheduler."""


def play(
    cells: Sequence[Cell],
    folder: Path,
    backend: Backend | None = None,
    advance: Callable[[float], None] = lambda played: None,
) -> None:
    """Plays the shards of some runs that have no result file in a folder yet, and writes their files.

    It may be killed at any moment and called again. Several processes may do this with one folder at the same time:
    each shard is played by one of them, and every process waits until all shards are done. An error in a shard is
    raised after the other shards that are being played have ended and have been written.

    Args:
        cells: The runs, each of which is split into shards (each with some of the run's seeds).
        folder: Folder for the shards' files; made if it does not exist.
        backend: Where to play; None for this process.
        advance: Called with the agent-rounds played since its last call, about twice a second, from a separate thread.

    Raises:
        BackendError: The backend cannot play shards.
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
    """The shards that are still to be played, and this process's locks on those that it plays.

    Attributes:
        left: The shards that have no file yet, by the path of the file.
        locks: The locks that this process holds, by the path of the shard's file.
    """

    def __init__(self, shards: dict[Path, Cell]) -> None:
        """Begins with all shards still to be played.

        Args:
            shards: The shards, by the paths of their files.
        """
        self.left = shards
        self.locks: dict[Path, ShardLock] = {}
        self._sizes = {file: shard.size for file, shard in shards.items()}
        self._errors: list[Exception] = []

    def play(self, backend: Backend) -> None:
        """Plays all shards that no other process is playing (has locked), and writes their files.

        Args:
            backend: Where to play.

        Raises:
            Exception: The first error that a shard has raised.
        """
        with closing(backend.run(self._tasks())) as results:
            for file, content in results:
                if isinstance(content, Exception):
                    self._errors.append(content)
                else:
                    # If this raises an error, the lock is given up with the others, and so its partial file is removed.
                    self.locks[file].write(content)
                    del self.locks[file], self.left[file]
        if self._errors:
            raise self._errors[0]

    def _tasks(self) -> Iterator[Any]:
        """Yields a call that plays a shard, for each shard on which this process gets the lock.

        Nothing more is yielded after a shard has raised an error.
        """
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
        """Reports progress inside of a ``with`` block, twice a second, from a separate thread.

        Args:
            advance: Called with the number of agent-rounds that were played since its last call.
        """
        over = Event()

        def report() -> None:
            reported, ended = 0.0, False
            while not ended:
                ended = over.wait(_SECONDS)
                # The number may be lower than before, when a shard was begun again; that is not reported.
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
        """Returns how many agent-rounds have been played, of finished shards and of those that are being played."""
        done = sum(size for file, size in self._sizes.items() if file not in self.left)
        return done + sum(lock.played for lock in list(self.locks.values()))


def _played(shard: Cell, file: Path) -> tuple[Path, bytes | Exception]:
    """Plays a shard; called in this process, in another process or on another machine.

    Args:
        shard: The shard.
        file: Path of the shard's file, which is not written here.

    Returns:
        The path, and the content for the file. If an error was raised, it is returned in place of the content, since
        raising it here would also end the shards that others are playing.
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
