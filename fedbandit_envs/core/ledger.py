"""The release ledger counts all releases of agents, so that privacy claims can be compared with the count.

All wrappers of a stack share the ledger of the environment inside. The height of a wrapper is the number of wrappers
inside of it. Data that are released at some height have passed every wrapper below it and none above it. The methods
that release data and make claims are final: subclasses cannot override them.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.core.privacy import Adjacency, Claim

Counts = npt.NDArray[np.int64]


class ReleaseLedger:
    """The count of one episode's releases, by agent and by height (the number of wrappers that the data has passed).

    Attributes:
        episode: Number of the running episode; None before the first.
        shape: ``(replicas, agents)`` of the episode.
        num_releases: How often at least one agent has released data in this episode.
        unclaimable_reason: Why no privacy can be claimed for the episode, however much noise is added; empty if it can.
        clipped_releases: How many releases of each agent :meth:`clipped` has scaled down in the latest round, int64
            ``(replicas, agents)``; the wrapper that clips sets it to 0 in every round.
        claim_fn: A function that returns the claim for releases with noise, set by the wrapper that adds noise; None if
            there is no such wrapper.
        claims_fn: A function that returns the claims for all observers, least trust first, set likewise.
    """

    def __init__(self) -> None:
        """Creates a ledger before the first episode."""
        self.episode: int | None = None
        self.shape: tuple[int, int] = (0, 0)
        self.num_releases = 0
        self.unclaimable_reason = ""
        self.clipped_releases: Counts = np.zeros(self.shape, np.int64)
        self.claim_fn: Callable[[], Claim] | None = None
        self.claims_fn: Callable[[], list[Claim]] | None = None
        self._adjacency: Adjacency = ""
        self._left: dict[int, Counts] = {}

    def begin(self, shape: tuple[int, int], adjacency: Adjacency) -> None:
        """Starts an episode without releases. After this, wrappers may set ``claim_fn`` and ``unclaimable_reason``.

        Args:
            shape: ``(replicas, agents)``.
            adjacency: The adjacency that claims name if no wrapper adds noise; epsilon is then 0 or infinite under any
                adjacency.
        """
        self.episode = 0 if self.episode is None else self.episode + 1
        self.shape = shape
        self.num_releases = 0
        self.unclaimable_reason = ""
        self.clipped_releases = np.zeros(shape, np.int64)
        self.claim_fn = self.claims_fn = None
        self._adjacency = adjacency
        self._left = {}

    def count(self, height: int, senders: npt.NDArray[np.bool_]) -> None:
        """Counts one release at a height, of the agents for which ``senders``, bool ``(replicas, agents)``, is true."""
        if senders.any():
            self.num_releases += 1
            self._left[height] = self._left.get(height, np.zeros(self.shape, np.int64)) + senders

    def clipped(self, statistic: Arrays, senders: npt.NDArray[np.bool_], clip: float) -> Arrays:
        """Returns releases of a Euclidean norm of at most ``clip``; larger ones are scaled down, and counted.

        The norm is that of all numbers in an agent's release together. What is cut off is lost: no later release
        contains it.

        Args:
            statistic: The releases, arrays ``(replicas, agents, ...)`` by name.
            senders: Whether each agent sends, bool ``(replicas, agents)``.
            clip: The largest norm, > 0.

        Raises:
            ValueError: A sender's release is not finite.
        """
        flat = np.concatenate(
            [array.reshape(*self.shape, -1) for array in statistic.values()], axis=2, dtype=np.float64
        )
        if not np.isfinite(flat[senders]).all():
            raise ValueError(
                "a release has numbers that are not finite; finite ones are required where it is clipped"
            )
        # In units of the largest number, so that squares neither overflow nor underflow. Released zeros give infinity.
        largest = np.abs(flat).max(axis=2, initial=0.0)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            unit = flat / np.where(largest > 0, largest, 1.0)[..., np.newaxis]
            factor = np.float64(clip) / largest / np.linalg.norm(unit, axis=2)
        large = factor < 1
        # A little less than the bound, so that rounding cannot lead beyond it.
        factor = np.where(large, factor * (1 - 1e-12), 1.0)
        self.clipped_releases += large & senders
        return {
            name: array * factor.reshape(factor.shape + (1,) * (array.ndim - 2))
            for name, array in statistic.items()
        }

    def left(self, height: int) -> tuple[Counts, Counts]:
        """Returns how often each agent has released below a height, and how often at this height or above it.

        Both arrays are int64 ``(replicas, agents)``.
        """
        below, above = np.zeros((2, *self.shape), np.int64)
        for place, times in self._left.items():
            (below if place < height else above)[...] += times
        return below, above

    def claim(self) -> Claim:
        """Returns the privacy claim for all releases of this episode, for the agent with the largest privacy loss.

        If no wrapper adds noise, epsilon is infinite once anything has been released. Before that it is None if there
        is an ``unclaimable_reason``, and 0 otherwise.
        """
        if self.claim_fn is not None:
            return self.claim_fn()
        if self.num_releases:
            return Claim(np.inf, 0.0, self._adjacency, "basic", "released without noise")
        if self.unclaimable_reason:
            return Claim(None, 0.0, self._adjacency, "basic", self.unclaimable_reason)
        return Claim(0.0, 0.0, self._adjacency, "basic", "nothing has been released")
