"""The one door of a federation: what leaves agents is counted here, and claims are held against the count.

All layers of a stack share the door of the environment they stand around. A layer's height is the number of wrappers
inside of it. Data that leaves at some height has passed everything below, and nothing above.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fedbandit_envs.claim import Adjacency, Claim

Counts = npt.NDArray[np.int64]


class Door:
    """Counts releases by agent and height, for one episode at a time.

    Attributes:
        episode: Changes with every episode; None before the first.
        shape: ``(replicas, agents)`` of the episode.
        opened: How often something has left in this episode.
        withheld: Why nothing can be claimed about what leaves, whatever its noise; empty if it can.
        guard: Claims for what passes the layer that adds noise; None where there is no such layer.
    """

    def __init__(self) -> None:
        """Opens no episode yet."""
        self.episode: int | None = None
        self.shape: tuple[int, int] = (0, 0)
        self.opened = 0
        self.withheld = ""
        self.guard: Callable[[], Claim] | None = None
        self._adjacency: Adjacency = ""
        self._left: dict[int, Counts] = {}

    def begin(self, shape: tuple[int, int], adjacency: Adjacency) -> None:
        """Starts an episode in which nothing has left, nothing is guarded and nothing withheld.

        Args:
            shape: ``(replicas, agents)``.
            adjacency: Under which claims are made where nothing is guarded: it is all or nothing under any.
        """
        self.episode = 0 if self.episode is None else self.episode + 1
        self.shape = shape
        self.opened = 0
        self.withheld = ""
        self.guard = None
        self._adjacency = adjacency
        self._left = {}

    def count(self, height: int, senders: npt.NDArray[np.bool_]) -> None:
        """Counts what has just left at some height, bool ``(replicas, agents)``."""
        if senders.any():
            self.opened += 1
            if height not in self._left:
                self._left[height] = np.zeros(self.shape, np.int64)
            self._left[height] += senders

    def left(self, height: int) -> tuple[Counts, Counts]:
        """Returns how often each agent's data has left below some height, and how often there or above."""
        below, above = np.zeros((2, *self.shape), np.int64)
        for place, times in self._left.items():
            (below if place < height else above)[...] += times
        return below, above

    def claim(self) -> Claim:
        """Claims what privacy the releases of this episode had, for the agent that has spent most.

        Without a guard it is all or nothing: silence is perfectly private, raw data not at all.
        """
        if self.guard is not None:
            return self.guard()
        if self.opened:
            return Claim(np.inf, 0.0, self._adjacency, "basic", "released without noise")
        if self.withheld:
            return Claim(None, 0.0, self._adjacency, "basic", self.withheld)
        return Claim(0.0, 0.0, self._adjacency, "basic", "nothing has been released")
