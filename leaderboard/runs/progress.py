"""The progress of a sweep: a file with one number a shard, which all processes that play shards can reach."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import numpy as np

from fedbandit_envs.basics.arrays import Array

_SECONDS = 0.5


@contextmanager
def progress_file(file: Path, shards: int, advance: Callable[[float], None]) -> Iterator[Array]:
    """Writes a progress file and, while it is open, reports from it about twice a second.

    Shards that are played where the file cannot be reached count when they are done.

    Args:
        file: Where; the caller removes it.
        shards: How many there are.
        advance: Called, by a thread, with what was played since its last call.

    Yields:
        What has been played of each shard, float64 ``(shards,)``, as the file has it; may be written into.
    """
    played = np.memmap(file, np.float64, "w+", shape=shards)
    reported, over = 0.0, Event()

    def report() -> None:
        nonlocal reported
        # Less than before, where a shard was begun again.
        if (now := float(played.sum())) > reported:
            advance(now - reported)
            reported = now

    def keep_reporting() -> None:
        while not over.wait(_SECONDS):
            report()

    thread = Thread(target=keep_reporting, daemon=True)
    thread.start()
    try:
        yield played
    finally:
        over.set()
        thread.join()
        report()


def shard_progress(file: Path, shard: int) -> Callable[[float], None]:
    """Returns the function by which a shard, wherever it is played, adds what it has played to a progress file.

    Args:
        file: The progress file.
        shard: The shard's number.
    """
    try:
        played = np.memmap(file, np.float64, "r+")
    except OSError:
        return lambda more: None
    played[shard] = 0.0

    def add(more: float) -> None:
        played[shard] += more

    return add
