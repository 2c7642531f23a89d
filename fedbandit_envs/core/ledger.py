"""The release ledger counts all data that leave agents, and compares privacy claims with the count.

All wrappers of a stack share the ledger of the environment inside. The height of a wrapper is the number of wrappers
inside of it. Data that leave at some height have passed every wrapper below it and none above it.

Every call of a ``_release`` is counted, whoever makes it: data go from a wrapper to the next one outside, and leave
where the next one has not asked for them. A claim follows from this count and from the events that the accountant of
the layer of noise has booked. Nothing else can make one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedbandit_envs.basics.arrays import Array, Arrays, spread
from fedbandit_envs.basics.entry_points import handed_down
from fedbandit_envs.core.privacy import Adjacency, Claim

Counts = npt.NDArray[np.int64]

_INTERACTING = "what agents do changes what others experience, whatever they release"


def flatten(arrays: Mapping[str, Array]) -> Array:
    """Returns all numbers of each agent side by side, as a new float64 array ``(replicas, agents, values)``."""
    return np.concatenate(
        [array.reshape(*array.shape[:2], -1) for array in arrays.values()], axis=2, dtype=np.float64
    )


class ReleaseLedger:
    """The count of one episode's releases, by agent and by height (the number of wrappers that the data has passed).

    Attributes:
        episode: Number of the running episode; None before the first.
        shape: ``(replicas, agents)`` of the episode.
        num_releases: How often at least one agent has released data in this episode.
        clipped_releases: How many releases of each agent :meth:`clipped` has scaled down in the latest round, int64
            ``(replicas, agents)``; the wrapper that clips sets it to 0 in every round.
        interacting: Whether the problem, or a wrapper around it, declares that agents affect each other.
        noise: The layer of noise that data pass; None if no such layer is known. Only a privatizer's accountant of
            these very data makes a claim, so that writing another layer here cannot make a claim smaller.
    """

    episode: int | None = None

    def __init__(self) -> None:
        """Creates a ledger before the first episode."""
        self.interacting = False
        # The calls of `_release` that are running, from the outermost in: the height, and whose data have been taken.
        self._running: list[tuple[int, npt.NDArray[np.bool_]]] = []
        self.begin((0, 0), "")
        self.episode = None

    def begin(self, shape: tuple[int, int], adjacency: Adjacency) -> None:
        """Starts an episode without releases. After this, wrappers may set ``unclaimable_reason``.

        Args:
            shape: ``(replicas, agents)``.
            adjacency: The adjacency that claims name if no wrapper adds noise; epsilon is then 0 or infinite under any
                adjacency.
        """
        self.episode = 0 if self.episode is None else self.episode + 1
        self.shape = shape
        self.num_releases = 0
        self.clipped_releases: Counts = np.zeros(shape, np.int64)
        self.noise: Any = None
        self._reason = _INTERACTING if self.interacting else ""
        self._adjacency = adjacency
        self._left: dict[int, Counts] = {}

    @property
    def unclaimable_reason(self) -> str:
        """Why no privacy can be claimed for the episode, however much noise is added; empty if it can.

        The first reason that is set stays until the episode ends.
        """
        return self._reason

    @unclaimable_reason.setter
    def unclaimable_reason(self, reason: str) -> None:
        self._reason = self._reason or reason

    def carry(
        self, level: Any, release: Callable[[Array], Arrays], senders: Array, holds: bool = False
    ) -> Arrays:
        """Returns ``release(senders)``, data that pass a wrapper or leave the problem, and counts those that leave.

        A release is counted here unless a running release of the same wrapper or of the next one outside asked for the
        data: that release then holds them, and is counted in its place. If an error ends the release, the data that it
        had already taken from inside count all the same.

        Args:
            level: The wrapper or problem.
            release: The function that takes the data.
            senders: Whose data, bool ``(replicas, agents)``.
            holds: Whether a data layer stores the data for its agents and sends nothing yet; then no release is
                counted. Other layers ignore it.
        """
        layer, height, taken = getattr(type(level), "layer", ""), level._height, np.array(senders, np.bool_)
        if layer == "noise":
            self.noise = level
        running, inside = self._running, np.zeros(self.shape, np.bool_)
        running.append((height, inside))
        try:
            released = release(senders)
            inside |= taken
            return released
        finally:
            running.pop()
            if running and running[-1][0] in (height, height + 1):
                running[-1][1][...] |= inside
            elif not (holds and layer == "data") and np.count_nonzero(inside):
                self.num_releases += 1
                self._left[height] = self._left.get(height, 0) + inside.astype(np.int64)

    def passing(self, height: int) -> bool:
        """Returns whether data are passing the wrapper of this height just now."""
        return bool(self._running) and self._running[-1][0] == height

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
        flat = flatten(statistic)
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
        return {name: array * spread(factor, array) for name, array in statistic.items()}

    def left(self, height: float) -> tuple[Counts, Counts]:
        """Returns how often each agent has released below a height, and how often at this height or above it.

        Both arrays are int64 ``(replicas, agents)``.
        """
        below, above = np.zeros((2, *self.shape), np.int64)
        for place, times in self._left.items():
            (below if place < height else above)[...] += times
        return below, above

    def claims(self) -> list[Claim]:
        """Returns the privacy claims for all releases of this episode, one for each observer, least trust first.

        If data pass a privatizer, its accountant makes the claims. Otherwise there is one claim, and the first rule
        that applies sets its epsilon: it is infinite if data have left without noise, None if there is an
        ``unclaimable_reason`` or if data have left with noise that no accountant booked, and else 0.
        """
        height = np.inf
        if self.noise is not None:
            height = self.noise._height
            books, privatizer = getattr(self.noise, "_accountant", None), handed_down("privatizer")
            if isinstance(self.noise, privatizer) and books is not None and books._ledger is self:
                return privatizer.claims(self.noise)
        bare, noisy = self.left(height)
        if bare.any():
            return [Claim(np.inf, 0.0, self._adjacency, "basic", "released without noise")]
        if reason := self._reason or "no accountant has booked the noise" * bool(noisy.any()):
            return [Claim(None, 0.0, self._adjacency, "basic", reason)]
        return [Claim(0.0, 0.0, self._adjacency, "basic", "nothing has been released")]
