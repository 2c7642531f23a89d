"""Options of commands that play many runs: where to play them."""

from typing import Annotated

import typer

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.leaderboard.runs.backends import Backend, Dask, Local

WorkersOption = Annotated[int, typer.Option(help="Number of processes.", min=1)]
BackendOption = Annotated[
    str,
    typer.Option(help="joblib: processes of this machine; dask: a scheduler's workers, with --scheduler."),
]
SchedulerOption = Annotated[str | None, typer.Option(help="Of dask: tcp://HOST:PORT.")]


def backend_of(name: str, scheduler: str | None, workers: int) -> Backend:
    """Returns the backend that a command's options name.

    Args:
        name: ``joblib`` or ``dask``.
        scheduler: Address of Dask's.
        workers: Number of processes; Dask has its own.

    Raises:
        ValueError: The name is unknown, or there is no scheduler where one is needed, or one where none is.
    """
    require_choice("--backend", name, ("joblib", "dask"))
    if (scheduler is None) is (name == "dask"):
        raise ValueError(
            f"--scheduler is {scheduler!r}; an address is required with --backend dask, and only there"
        )
    return Local(workers) if scheduler is None else Dask(scheduler)
