"""Backends that play shards: processes of this machine, or the workers of a Dask scheduler."""

import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from threading import Thread
from time import sleep
from typing import Any

from joblib import Parallel

_SECONDS = 10
_WATCH = 0.5

Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A call, as :func:`joblib.delayed` makes it."""


class BackendError(RuntimeError):
    """A backend cannot play shards; the message says why."""


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
            sleep(_WATCH)
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
            client = Client(self.scheduler, timeout=_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise BackendError(
                f"scheduler is {self.scheduler!r}, where none answers as tcp://HOST:PORT: {error}"
            ) from error
        with closing(client):
            try:
                client.wait_for_workers(1, timeout=_SECONDS)
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
