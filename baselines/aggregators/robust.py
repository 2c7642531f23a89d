"""Robust aggregators: trimmed means and medians of the totals that senders have sent so far (compiled)."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, kernel


@kernel
def _remember(arrived, received, weight, sent, known):
    """Adds the received numbers, times the weight, to each sender's total, and marks these numbers as known."""
    for r in range(received.shape[0]):
        for j in range(received.shape[1]):
            for s in range(received.shape[2]):
                for i in range(received.shape[3]):
                    if arrived[r, j, s, i % arrived.shape[3]]:
                        known[r, j, s, i] = True
                        sent[r, j, s, i] += weight * received[r, j, s, i]


@allocating_kernel
def _trim_groups(arrived, sent, known, own, groups, share, total):
    """Writes the trimmed mean of the means of groups of senders, times the number of senders, number by number.

    Sender s is in group s modulo ``groups``. The group means are sorted, and the ``share`` at either end is dropped,
    though never all of them: with a share of one half the median of the group means remains. Only numbers for which
    something has arrived in this round are computed anew. The totals that an agent has sent to itself are added in
    full and are in no group.

    Args:
        arrived: Which numbers have arrived in this round, bool ``(replicas, agents, senders, numbers)``, or
            ``(..., 1)`` for whole messages.
        sent: Total that each sender has sent so far, ``(replicas, agents, senders, numbers)``.
        known: Which numbers have arrived at least once so far, bool, same shape as ``sent``.
        own: Which senders are the receiving agents themselves, bool ``(replicas, agents, senders)``.
        groups: Number of groups.
        share: Share of the group means that is dropped at either end, in [0, 1/2].
        total: Receives the result, ``(replicas, agents, numbers)``.
    """
    rows, agents, senders, numbers = sent.shape
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
                        trusted += sent[r, j, s, i]
                    elif known[r, j, s, i]:
                        means[s % groups] += sent[r, j, s, i]
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
                    # The small constant undoes rounding errors: 0.29 * 100 is slightly below 29 in floating point, and
                    # would be cut to 28.
                    dropped = min(int(share * found + 1e-9), (found - 1) // 2)
                    middle = 0.0
                    for g in range(dropped, found - dropped):
                        middle += means[g]
                    total[r, j, i] += others * middle / (found - 2 * dropped)


@allocating_kernel
def _keep_nearest(arrived, sent, known, own, share, total):
    """Writes the mean of the senders nearest to the coordinate-wise median, times the number of senders.

    Only agents for which something has arrived in this round are computed anew. The totals that an agent has sent to
    itself are added in full.

    Args:
        arrived: Which numbers have arrived in this round, bool ``(replicas, agents, senders, numbers)``, or
            ``(..., 1)`` for whole messages.
        sent: Total that each sender has sent so far, ``(replicas, agents, senders, numbers)``.
        known: Which numbers have arrived at least once so far, bool, same shape as ``sent``.
        own: Which senders are the receiving agents themselves, bool ``(replicas, agents, senders)``.
        share: Share of the senders that is dropped, those furthest from the median, in [0, 1/2).
        total: Receives the result, ``(replicas, agents, numbers)``.
    """
    rows, agents, senders, numbers = sent.shape
    values, distance = np.empty(senders), np.empty(senders)
    centre, others = np.empty(numbers), np.empty(numbers, np.int64)
    for r in range(rows):
        for j in range(agents):
            if not arrived[r, j].any():
                continue
            for i in range(numbers):
                others[i] = 0
                for s in range(senders):
                    if known[r, j, s, i] and not own[r, j, s]:
                        values[others[i]] = sent[r, j, s, i]
                        others[i] += 1
                values[: others[i]].sort()
                # A number that no other agent has sent has no median; 0 is written, and nothing is added to the total.
                centre[i] = (
                    0.5 * (values[(others[i] - 1) // 2] + values[others[i] // 2]) if others[i] else 0.0
                )
            found = 0
            for s in range(senders):
                count, square = 0, 0.0
                for i in range(numbers):
                    if known[r, j, s, i]:
                        count += 1
                        square += (sent[r, j, s, i] - centre[i]) ** 2
                counted = count > 0 and not own[r, j, s]
                distance[s] = square / count if counted else np.inf
                found += counted
            kept = np.argsort(distance, kind="mergesort")[: found - int(share * found + 1e-9)]
            for i in range(numbers):
                trusted, middle, count = 0.0, 0.0, 0
                for s in range(senders):
                    if own[r, j, s]:
                        trusted += sent[r, j, s, i]
                for s in kept:
                    if known[r, j, s, i]:
                        middle += sent[r, j, s, i]
                        count += 1
                total[r, j, i] = trusted + others[i] * (middle / count if count else centre[i])


class _BySender(Aggregator):
    """Base class of robust aggregators: it keeps the total of each sender, and a subclass combines these totals.

    Each array of a message is combined separately.
    """

    def _begin(self, inbox: InboxSpec) -> None:
        super()._begin(inbox)
        self._own = np.zeros((*inbox.rows, inbox.senders), np.bool_)
        self._sent = {
            name: np.zeros((*self._own.shape, int(np.prod(shape)))) for name, shape in inbox.shapes.items()
        }
        self._known = {name: np.zeros(sent.shape, np.bool_) for name, sent in self._sent.items()}

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        if "inbox_own" in observation:
            self._own |= observation["inbox_own"]
        for name, sent in self._sent.items():
            known = self._known[name]
            _remember(arrived, observation[f"inbox_{name}"].reshape(sent.shape), weight, sent, known)
            self._combine(arrived, sent, known, self._own, self.totals[name].reshape(*sent.shape[:2], -1))

    @abstractmethod
    def _combine(self, arrived: Array, sent: Array, known: Array, own: Array, total: Array) -> None:
        """Combines the senders' totals of one array into ``total``; arguments as in :func:`_trim_groups`."""


@dataclass
class _Trimmed(_BySender):
    """Base class of aggregators that drop a share of the senders, in [0, 0.5)."""

    share: float

    def __post_init__(self) -> None:
        """Checks that ``share`` is a number in [0, 0.5).

        Raises:
            TypeError: The share is no number.
            ValueError: The share is not in [0, 0.5).
        """
        require_number("share", self.share, 0, 0.5, open_above=True)


@dataclass
class TrimmedMean(_Trimmed):
    """The mean over senders without the largest and the smallest totals, number by number, times the number of senders.

    Senders are the other agents that have sent the number at least once. What an agent has sent to itself is added in
    full.

    Attributes:
        share: Share of the senders dropped at either end, rounded down to whole senders; in [0, 0.5).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import InboxSpec, TrimmedMean
        >>> aggregate = TrimmedMean(share=0.34).start(InboxSpec((1, 1), 3, {"pulls": ()}))
        >>> aggregate.add({"inbox_mask": np.ones((1, 1, 3), bool), "inbox_pulls": np.array([[[1.0, 2.0, 900.0]]])})
        >>> aggregate.totals["pulls"]
        array([[6.]])
    """

    def _combine(self, arrived: Array, sent: Array, known: Array, own: Array, total: Array) -> None:
        _trim_groups(arrived, sent, known, own, own.shape[2], float(self.share), total)


@dataclass
class TrimmedSenders(_Trimmed):
    """The mean over senders without those furthest from the coordinate-wise median, times the number of senders.

    Senders are the other agents that have sent the number at least once. What an agent has sent to itself is added in
    full. Each array of a message is combined by itself: a sender's distance is the root mean square difference of its
    array from the median, and the array is kept or dropped whole.

    Attributes:
        share: Share of the senders dropped, rounded down to whole senders; in [0, 0.5).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import InboxSpec, TrimmedSenders
        >>> aggregate = TrimmedSenders(share=0.4).start(InboxSpec((1, 1), 3, {"sums": (2,)}))
        >>> sums = np.array([[[[1.0, 2.0], [3.0, 2.0], [1.0, 900.0]]]])
        >>> aggregate.add({"inbox_mask": np.ones((1, 1, 3), bool), "inbox_sums": sums})
        >>> aggregate.totals["sums"]
        array([[[6., 6.]]])
    """

    def _combine(self, arrived: Array, sent: Array, known: Array, own: Array, total: Array) -> None:
        _keep_nearest(arrived, sent, known, own, float(self.share), total)


@dataclass
class MedianOfMeans(_BySender):
    """The median of the means of groups of senders, number by number, times the number of senders.

    Attributes:
        groups: Number of groups; sender s is in group s modulo ``groups``. Groups without a message are left out.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import InboxSpec, MedianOfMeans
        >>> aggregate = MedianOfMeans(groups=3).start(InboxSpec((1, 1), 3, {"pulls": ()}))
        >>> aggregate.add({"inbox_mask": np.ones((1, 1, 3), bool), "inbox_pulls": np.array([[[1.0, 2.0, 900.0]]])})
        >>> aggregate.totals["pulls"]
        array([[6.]])
    """

    groups: int

    def __post_init__(self) -> None:
        """Checks that ``groups`` is an integer >= 1.

        Raises:
            TypeError: The number is no integer.
            ValueError: The number is < 1.
        """
        require_integer("groups", self.groups, 1)

    def _combine(self, arrived: Array, sent: Array, known: Array, own: Array, total: Array) -> None:
        _trim_groups(arrived, sent, known, own, int(self.groups), 0.5, total)
