"""Plays shards of runs, in processes of this machine or on workers of a Dask scheduler.

A shard is a part of a run, with some of its seeds. Its result is written to a file as soon as it has been played.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import sleep
from traceback import format_exc
from typing import TypeVar

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.experiments.store import Cell, Store

T = TypeVar("T")

_SECONDS = 0.5
_TIMEOUT = 10  # seconds


class BackendError(RuntimeError):
    """Processes or machines that should play shards cannot do so; the message has the reason."""


@dataclass(frozen=True)
class Local:
    """A backend that plays shards in processes of this machine.

    Attributes:
        jobs: Number of processes; with 1 shards are played in this process itself.
    """

    jobs: int = 1

    def run(self, call: Callable[..., T], tasks: Iterable[tuple[object, ...]]) -> Generator[T, None, None]:
        """Calls a function in parallel, and yields what it returns, in the order in which calls end.

        Args:
            call: The function.
            tasks: The arguments of each call; the next ones are taken when a process is free for them.

        Raises:
            BackendError: A process has died.
        """
        from joblib import Parallel, delayed  # It takes a tenth of a second to import.

        # Calls are not batched, so that each shard is stored as soon as it has been played. Worker processes end when
        # this process ends. They are replaced when this process has gone to another folder, as its arguments differ.
        parallel = Parallel(
            self.jobs,
            batch_size=1,
            pre_dispatch="n_jobs",
            return_as="generator_unordered",
            initializer=_end_with,
            initargs=(os.getpid(), os.getcwd()),
        )
        try:
            yield from parallel(delayed(call)(*task) for task in tasks)
        except BrokenProcessPool as error:
            raise BackendError(
                f"a process that played has been ended; what is finished is kept, so start again: {error}"
            ) from error


def _end_with(parent: int, folder: str) -> None:
    """Makes this process end within a second after its parent process has ended, even if the parent was killed."""

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

    def run(self, call: Callable[..., T], tasks: Iterable[tuple[object, ...]]) -> Generator[T, None, None]:
        """Calls a function on the workers; see :meth:`Local.run`.

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
                for task in islice(left, max(1, room)):
                    running.add(client.submit(call, *task, pure=False))

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

    It may be killed at any moment and called again. Several processes may do this with one folder at the same time: a
    shard that two of them play has the same result twice. An error in a shard is raised after the other shards that are
    being played have ended and have been written.

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
    shards = {store.path(shard): shard for shard in store.missing(cells)}
    left = dict(shards)
    errors: list[Exception] = []

    def tasks() -> Iterator[tuple[Cell, Path]]:
        order = list(shards)
        # Processes that share the folder then seldom play the same shard.
        Random().shuffle(order)
        for file in order:
            if errors:
                return
            if store.has(file):
                del left[file]
            else:
                yield shards[file], file

    def played() -> float:
        done = sum(shard.size for file, shard in shards.items() if file not in left)
        return done + sum(map(_progress_of, list(left)))

    with _reporting(played, advance), closing((backend or Local()).run(_play, tasks())) as results:
        for file, result in results:
            _progress_file(file).unlink(missing_ok=True)
            if isinstance(result, Exception):
                errors.append(result)
            else:
                store.write(file, result)
                del left[file]
    if errors:
        raise errors[0]


@contextmanager
def _reporting(played: Callable[[], float], advance: Callable[[float], None]) -> Iterator[None]:
    """Reports how much more has been played inside of a ``with`` block, twice a second, from a separate thread."""
    over = Event()

    def report() -> None:
        reported, ended = 0.0, False
        while not ended:
            ended = over.wait(_SECONDS)
            # The number is lower than before when a shard was begun again; that is not reported.
            if (now := played()) > reported:
                advance(now - reported)
                reported = now

    thread = Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _play(shard: Cell, file: Path) -> tuple[Path, Arrays | Exception]:
    """Plays a shard in this process, in another one or on another machine, and returns its file's path and content.

    An error is returned in place of the content: if it were raised, it would end the shards that others are playing.
    """
    progress, played = _progress_file(file), 0.0

    def advance(more: float) -> None:
        nonlocal played
        played += more
        # A machine that does not share the folder reports nothing until the end.
        with suppress(OSError):
            progress.write_text(str(played))

    try:
        if Store(file.parent).path(shard) != file:
            raise BackendError(
                "a worker has another source of fedbandit-envs than this process, so that its results would be others; "
                "start it again with the same one"
            )
        return file, shard.play(advance)
    except Exception as error:
        error.add_note(f"While a shard was played:\n{format_exc()}")
        return file, error


def _progress_file(file: Path) -> Path:
    return file.with_suffix(".played")


def _progress_of(file: Path) -> float:
    try:
        return float(_progress_file(file).read_text())
    except (OSError, ValueError):
        return 0.0
