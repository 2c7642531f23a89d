"""How far a sweep is: each shard has a number in a file that all who play it can reach."""

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

import numpy as np

_SECONDS = 0.5


class Tally:
    """How much has been played of each shard, told about twice a second to whoever shows it.

    Shards played elsewhere, where the file cannot be reached, count once they are done.
    """

    def __init__(self, file: Path, sizes: Sequence[float], advance: Callable[[float], None]) -> None:
        """Writes the file.

        Args:
            file: Where; whose it is to remove.
            sizes: How much there is to play of each shard.
            advance: Told of how much was played since its last call.
        """
        self.file = file
        self._sizes = sizes
        self._advance = advance
        self._played = np.memmap(file, np.float64, "w+", shape=len(sizes))
        self._told = 0.0
        self._over = Event()
        self._teller = Thread(target=self._keep_telling, daemon=True)

    def __enter__(self) -> Self:
        """Begins to tell."""
        self._teller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tells what has not been told."""
        self._over.set()
        self._teller.join()
        self._tell()

    def done(self, shard: int) -> None:
        """Notes that a shard has been played."""
        self._played[shard] = self._sizes[shard]

    def _keep_telling(self) -> None:
        while not self._over.wait(_SECONDS):
            self._tell()

    def _tell(self) -> None:
        # Less than before, where a shard was begun again.
        played = float(self._played.sum())
        if played > self._told:
            self._advance(played - self._told)
            self._told = played


def noting(file: Path, shard: int) -> Callable[[float], None]:
    """Returns what a shard tells of how much has been played, wherever it is played.

    Args:
        file: Of the tally.
        shard: Its number.
    """
    try:
        played = np.memmap(file, np.float64, "r+")
    except OSError:
        return lambda more: None
    played[shard] = 0.0

    def note(more: float) -> None:
        played[shard] += more

    return note
