"""Plays shards of runs, in processes of this machine or on workers of a Dask scheduler.

A shard is a part of a run, with some of its seeds. Its result is written to a file as soon as it has been played.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import partial
from os import _exit, chdir, getcwd, getpid, getppid
from pathlib import Path
from random import Random
from threading import Thread
from time import sleep
from warnings import simplefilter

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.experiments.store import Cell, Store

_TIMEOUT = 10  # seconds


class BackendError(RuntimeError):
    """Processes or machines that should play shards cannot do so; the message has the reason."""


def play(
    cells: Sequence[Cell],
    folder: Path,
    workers: int = 1,
    scheduler: str | None = None,
    advance: Callable[[float], None] = lambda played: None,
) -> None:
    """Plays the shards of some runs that have no result file in a folder yet, and writes their files.

    You may kill it at any moment and call it again; it then plays what is missing. Several processes may do this with
    one folder at the same time: a shard that two of them play has the same result twice. An error in a shard ends the
    others that are being played; what was written before stays.

    Args:
        cells: The runs, each of which is split into shards (each with some of the run's seeds).
        folder: Folder for the shards' files; made if it does not exist.
        workers: Number of processes; if it is 1, this process plays all shards.
        scheduler: Address of a Dask scheduler, ``tcp://host:port``, whose workers play instead. Workers may come and
            go; the shard of a worker that has died is given to another one.
        advance: Called with the number of agent-rounds of a shard once its file exists.

    Raises:
        BackendError: The processes or the workers of Dask cannot play, or a worker has another source.
    """
    require_integer("workers", workers, 1)
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder)
    shards = {store.path(shard): shard for shard in store.missing(cells)}

    def tasks() -> Iterator[tuple[Cell, Path]]:
        # In a random order, so that processes that share the folder seldom play the same shard.
        for file in Random().sample(list(shards), len(shards)):
            if file.exists():
                advance(shards[file].size)
            else:
                yield shards[file], file

    with closing(_on_dask(scheduler, tasks()) if scheduler else _here(workers, tasks())) as written:
        for file in written:
            advance(shards[file].size)


@contextmanager
def progress(name: str, total: float | None, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Shows a progress bar with elapsed and remaining time on the error stream.

    Args:
        name: Label of the bar.
        total: Amount of work at which the bar is full, in any unit; None if it is not known yet.
        shown: Whether it is shown at all.

    Yields:
        A function that changes the bar by its arguments ``advance`` (work done since the last call), ``completed``
        (work done so far) or ``total``.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        yield partial(bar.update, bar.add_task(name, total=total))


def _here(workers: int, tasks: Iterable[tuple[Cell, Path]]) -> Generator[Path, None, None]:
    """Plays shards in processes of this machine, which write their files, and yields these in the order of writing."""
    from joblib import Parallel, delayed  # It takes a tenth of a second to import.

    # Calls are not batched, so that each shard is stored as soon as it has been played.
    way = {"batch_size": 1, "pre_dispatch": "n_jobs", "return_as": "generator_unordered"}
    parallel = Parallel(workers, **way, initializer=_end_with, initargs=(getpid(), getcwd()))
    try:
        yield from parallel(delayed(_write)(*task) for task in tasks)
    except BrokenProcessPool as error:
        raise BackendError(f"a process has been ended; what is finished is kept: {error}") from error


def _end_with(parent: int, folder: str) -> None:
    """Ends this process soon after its parent has been killed, and keeps it from repeating the parent's warnings."""
    simplefilter("ignore", UserWarning)
    chdir(folder)  # Relative paths are the parent's.

    def watch() -> None:
        while getppid() == parent:
            sleep(1)
        _exit(1)

    Thread(target=watch, daemon=True).start()


def _on_dask(scheduler: str, tasks: Iterable[tuple[Cell, Path]]) -> Generator[Path, None, None]:
    """Plays shards on the workers of a Dask scheduler, writes their files, and yields these in that order."""
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError as error:
        raise BackendError("the [dask] extra is missing: pip install 'fedbandit-envs[dask]'") from error
    try:
        client = Client(scheduler, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise BackendError(
            f"scheduler is {scheduler!r}, where none answers as tcp://HOST:PORT: {error}"
        ) from error
    with closing(client):
        try:
            client.wait_for_workers(1, timeout=_TIMEOUT)
        except TimeoutError as error:
            raise BackendError(f"the scheduler at {scheduler} has no workers") from error
        running = {client.submit(_play, *task, pure=False): task[1] for task in tasks}
        try:
            for future, result in as_completed(running, loop=client.loop, with_results=True):
                Store.write(running[future], result)
                yield running[future]
        except KilledWorker as error:
            raise BackendError(f"a shard ends whoever plays it: {error}") from error


def _play(shard: Cell, file: Path) -> Arrays:
    """Plays a shard in this process, in another one or on another machine."""
    if Store(file.parent).path(shard) != file:
        raise BackendError(
            "a worker has another source of fedbandit-envs than this process, or other files under the names in the "
            "settings, so that its results would be others; start it again with the same ones"
        )
    return shard.play()


def _write(shard: Cell, file: Path) -> Path:
    """Plays a shard and writes its file, so that an error in another process cannot lose it."""
    Store.write(file, _play(shard, file))
    return file
