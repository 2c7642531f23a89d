"""The release ledger: counts what leaves agents, so that claims can be held against the count.

All wrappers of a stack share the ledger of the environment inside. The height of a layer is the number of
wrappers inside of it. Data that leaves at some height has passed every layer below it and none above.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fedbandit_envs.core.claim import Adjacency, Claim

Counts = npt.NDArray[np.int64]


class ReleaseLedger:
    """The count of one episode's releases, by agent and by height (the number of wrappers that the data has passed).

    Attributes:
        episode: Number of the running episode; None before the first.
        shape: ``(replicas, agents)`` of the episode.
        num_releases: How often data of at least one agent has left in this episode.
        unclaimable_reason: Why nothing can be claimed about the episode, whatever its noise; empty if something can.
        claim_fn: Returns the claim about releases through the layer that adds noise; None where there is no such layer.
    """

    def __init__(self) -> None:
        """Starts without an episode."""
        self.episode: int | None = None
        self.shape: tuple[int, int] = (0, 0)
        self.num_releases = 0
        self.unclaimable_reason = ""
        self.claim_fn: Callable[[], Claim] | None = None
        self._adjacency: Adjacency = ""
        self._left: dict[int, Counts] = {}

    def begin(self, shape: tuple[int, int], adjacency: Adjacency) -> None:
        """Starts an episode in which nothing has left; layers set ``claim_fn`` and ``unclaimable_reason`` after it.

        Args:
            shape: ``(replicas, agents)``.
            adjacency: Named by claims where no layer adds noise: then privacy is all or nothing under any adjacency.
        """
        self.episode = 0 if self.episode is None else self.episode + 1
        self.shape = shape
        self.num_releases = 0
        self.unclaimable_reason = ""
        self.claim_fn = None
        self._adjacency = adjacency
        self._left = {}

    def count(self, height: int, senders: npt.NDArray[np.bool_]) -> None:
        """Counts a release at some height, by the agents in ``senders``, bool ``(replicas, agents)``."""
        if senders.any():
            self.num_releases += 1
            if height not in self._left:
                self._left[height] = np.zeros(self.shape, np.int64)
            self._left[height] += senders

    def left(self, height: int) -> tuple[Counts, Counts]:
        """Returns the number of each agent's releases below a height, and the number at this height or above."""
        below, above = np.zeros((2, *self.shape), np.int64)
        for place, times in self._left.items():
            (below if place < height else above)[...] += times
        return below, above

    def claim(self) -> Claim:
        """Returns the claim about all releases of this episode, for the agent that has spent most.

        Without a layer that adds noise it is all or nothing: silence is perfectly private, raw data not at all.
        """
        if self.claim_fn is not None:
            return self.claim_fn()
        if self.num_releases:
            return Claim(np.inf, 0.0, self._adjacency, "basic", "released without noise")
        if self.unclaimable_reason:
            return Claim(None, 0.0, self._adjacency, "basic", self.unclaimable_reason)
        return Claim(0.0, 0.0, self._adjacency, "basic", "nothing has been released")
