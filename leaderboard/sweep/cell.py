"""What is swept over: runs, split into shards that are played and kept one by one."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from fedbandit_envs.arrays import Arrays


class Cell(Protocol):
    """One run of an experiment, or a shard of it."""

    @property
    def key(self) -> list[Any]:
        """All that its results follow from, as JSON can have it, but for the package's source."""

    @property
    def size(self) -> float:
        """How much there is to play: agent-rounds, or what takes about as long."""

    def split(self) -> Sequence[Self]:
        """Returns its shards."""

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays it, and returns what is to be kept.

        Args:
            advance: Told of how much has been played since its last call.
        """

    def join(self, parts: Sequence[Arrays]) -> Any:
        """Puts a run together from what was kept of its shards, of which this is the first.

        Returns:
            What reports are given; it has ``cpu_seconds``, what playing took.
        """
