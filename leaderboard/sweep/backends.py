"""Where shards are played: by processes of this machine, or by the workers of a Dask scheduler."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from joblib import Parallel, parallel_config

_SECONDS = 10
# A shard at a time, so that each is kept once it is done.
_ONE_BY_ONE: dict[str, Any] = {"batch_size": 1, "return_as": "generator_unordered"}


class BackendError(RuntimeError):
    """Shards cannot be played where they were to be: the message says why."""


class Backend(Protocol):
    """What plays shards."""

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        """Yields results in the order in which they come.

        Args:
            tasks: Calls, as :func:`joblib.delayed` makes them; taken when there is somebody to make them.
        """


@dataclass(frozen=True)
class Local:
    """Processes of this machine.

    Attributes:
        jobs: How many; one is this process.
    """

    jobs: int = 1

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        """See :meth:`Backend.run`."""
        yield from Parallel(self.jobs, pre_dispatch="n_jobs", **_ONE_BY_ONE)(tasks)


@dataclass(frozen=True)
class Dask:
    """Workers of a Dask scheduler; what a worker was playing when it died others play again.

    Attributes:
        scheduler: Its address, ``tcp://host:port``.
    """

    scheduler: str

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        """See :meth:`Backend.run`.

        Raises:
            BackendError: The extra is not installed, or there is no scheduler or worker.
        """
        try:
            from distributed import Client
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
            with parallel_config(backend="dask", client=client):
                # As many more wait at the scheduler, for workers that come later.
                parallel = Parallel(-1, pre_dispatch="2 * n_jobs", **_ONE_BY_ONE)
            yield from parallel(tasks)
