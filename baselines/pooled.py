"""What has been heard in an episode, put together by row (compiled); :mod:`fedbandit_envs.baselines.pool` says how."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel


class Pooled(Protocol):
    """What rows have heard in an episode, put together; row (r, j) depends on what row (r, j) has heard alone."""

    @property
    def total(self) -> Array:
        """What stands for the sum, float64 ``(replicas, agents, numbers)``: always the same array, kept up to date."""

    def add(self, arrived: Array, told: Array, own: Array | None = None, weight: float = 1.0) -> None:
        """Takes in what has arrived.

        Args:
            arrived: What has, bool ``(replicas, agents, senders, numbers)``; or ``(..., 1)``, of whole messages.
            told: It, float64 ``(replicas, agents, senders, numbers)``; to be added to what the sender told before.
            own: Which messages are the agent's own, bool ``(replicas, agents, senders)``; None for none of them.
            weight: Multiplies what is told.
        """


@kernel
def _add_up(arrived, told, weight, total):
    """Adds what has arrived, weighted, sender by sender; see :meth:`Pooled.add`."""
    whole = arrived.shape[3] == 1
    for r in range(told.shape[0]):
        for j in range(told.shape[1]):
            for s in range(told.shape[2]):
                if whole:
                    if arrived[r, j, s, 0]:
                        for i in range(told.shape[3]):
                            total[r, j, i] += weight * told[r, j, s, i]
                else:
                    for i in range(told.shape[3]):
                        if arrived[r, j, s, i]:
                            total[r, j, i] += weight * told[r, j, s, i]


@kernel
def _remember(arrived, told, weight, held, heard):
    """Adds what has arrived, weighted, to what each sender has told before, and remembers of what it was heard."""
    for r in range(told.shape[0]):
        for j in range(told.shape[1]):
            for s in range(told.shape[2]):
                for i in range(told.shape[3]):
                    if arrived[r, j, s, i % arrived.shape[3]]:
                        heard[r, j, s, i] = True
                        held[r, j, s, i] += weight * told[r, j, s, i]


@kernel
def combine(arrived, held, heard, own, groups, share, total):
    """Makes the pooled numbers of which there is news anew.

    Senders are put into groups by their number, and means of groups in order; of these the ``share`` at either end is
    dropped, though never all: with a share of one half their median remains.

    Args:
        arrived: See :meth:`Pooled.add`.
        held: What each sender has told so far, ``(replicas, agents, senders, numbers)``.
        heard: Of which numbers it was heard, same shape.
        own: Which senders are the agents themselves, ``(replicas, agents, senders)``.
        groups: How many groups there are.
        share: In [0, 1/2].
        total: Receives them, ``(replicas, agents, numbers)``.
    """
    rows, agents, senders, numbers = held.shape
    means, sizes = np.empty(groups), np.empty(groups, np.int64)
    for r in range(rows):
        for j in range(agents):
            for i in range(numbers):
                if not arrived[r, j, :, i % arrived.shape[3]].any():
                    continue
                means[:] = 0.0
                sizes[:] = 0
                trusted, others = 0.0, 0
                for s in range(senders):
                    if own[r, j, s]:
                        trusted += held[r, j, s, i]
                    elif heard[r, j, s, i]:
                        means[s % groups] += held[r, j, s, i]
                        sizes[s % groups] += 1
                        others += 1
                found = 0
                for g in range(groups):
                    if sizes[g] > 0:
                        means[found] = means[g] / sizes[g]
                        found += 1
                total[r, j, i] = trusted
                if found > 0:
                    means[:found].sort()
                    # A share of 0.29 of 100 is 29, whatever rounding says.
                    dropped = min(int(share * found + 1e-9), (found - 1) // 2)
                    middle = 0.0
                    for g in range(dropped, found - dropped):
                        middle += means[g]
                    total[r, j, i] += others * middle / (found - 2 * dropped)


@kernel
def keep_nearest(arrived, held, heard, own, share, total):
    """Makes the pooled numbers of rows with news anew, from the senders nearest to the median; see :func:`combine`.

    Args:
        arrived: See there; so are the others.
        held: Likewise.
        heard: Likewise.
        own: Likewise.
        share: Of the senders, how many are dropped.
        total: Likewise.
    """
    rows, agents, senders, numbers = held.shape
    values, distance = np.empty(senders), np.empty(senders)
    centre, others = np.empty(numbers), np.empty(numbers, np.int64)
    for r in range(rows):
        for j in range(agents):
            if not arrived[r, j].any():
                continue
            for i in range(numbers):
                others[i] = 0
                for s in range(senders):
                    if heard[r, j, s, i] and not own[r, j, s]:
                        values[others[i]] = held[r, j, s, i]
                        others[i] += 1
                values[: others[i]].sort()
                # Of nobody's there is no middle, and none is needed.
                centre[i] = (
                    0.5 * (values[(others[i] - 1) // 2] + values[others[i] // 2]) if others[i] else 0.0
                )
            found = 0
            for s in range(senders):
                known, square = 0, 0.0
                for i in range(numbers):
                    if heard[r, j, s, i]:
                        known += 1
                        square += (held[r, j, s, i] - centre[i]) ** 2
                told = known > 0 and not own[r, j, s]
                distance[s] = square / known if told else np.inf
                found += told
            kept = np.argsort(distance, kind="mergesort")[: found - int(share * found + 1e-9)]
            for i in range(numbers):
                trusted, middle, known = 0.0, 0.0, 0
                for s in range(senders):
                    if own[r, j, s]:
                        trusted += held[r, j, s, i]
                for s in kept:
                    if heard[r, j, s, i]:
                        middle += held[r, j, s, i]
                        known += 1
                total[r, j, i] = trusted + others[i] * (middle / known if known else centre[i])


class Added:
    """What has been heard, added up."""

    def __init__(self, rows: tuple[int, ...], numbers: int) -> None:
        """Starts with nothing heard by ``rows``, ``(replicas, agents)``, of messages of so many ``numbers``."""
        self.total = np.zeros((*rows, numbers))

    def add(self, arrived: Array, told: Array, own: Array | None = None, weight: float = 1.0) -> None:
        """Adds what has arrived; see :meth:`Pooled.add`."""
        _add_up(arrived, told, weight, self.total)


class BySender:
    """What has been heard, kept apart by sender, and what stands for its sum."""

    def __init__(
        self, rows: tuple[int, ...], senders: int, numbers: int, combine: Callable[..., None], *how: float
    ) -> None:
        """Prepares for an episode in which nothing has been heard.

        Args:
            rows: ``(replicas, agents)``.
            senders: Number of senders that inboxes tell apart.
            numbers: How many numbers a message has.
            combine: A kernel that takes what has arrived, what is held of each sender, who was heard, what is an
                agent's own, ``how``, and the total, which it writes.
            *how: Of the kernel.
        """
        self.total = np.zeros((*rows, numbers))
        self._combine = combine
        self._how = how
        self._held = np.zeros((*rows, senders, numbers))
        self._heard = np.zeros(self._held.shape, np.bool_)
        self._own = np.zeros((*rows, senders), np.bool_)

    def add(self, arrived: Array, told: Array, own: Array | None = None, weight: float = 1.0) -> None:
        """Takes in what has arrived; see :meth:`Pooled.add`."""
        if own is not None:
            self._own |= own
        _remember(arrived, told, weight, self._held, self._heard)
        self._combine(arrived, self._held, self._heard, self._own, *self._how, self.total)
