"""Robust aggregators: trimmed means and medians of what senders have sent so far (compiled)."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.basics.compiled import kernel


@kernel
def _remember(arrived, received, weight, sent, known):
    """Adds the numbers that have arrived, times the weight, to each sender's total, and marks them as known."""
    for r in range(received.shape[0]):
        for j in range(received.shape[1]):
            for s in range(received.shape[2]):
                for i in range(received.shape[3]):
                    if arrived[r, j, s, i % arrived.shape[3]]:
                        known[r, j, s, i] = True
                        sent[r, j, s, i] += weight * received[r, j, s, i]


@kernel
def _trim_groups(arrived, sent, known, own, groups, share, total):
    """Writes the trimmed mean of group means, times the number of senders, for all numbers that have news.

    Sender s is in group s modulo ``groups``. Of the sorted means the ``share`` at either end is dropped, though never
    all of them: with a share of one half their median remains.

    Args:
        arrived: Which numbers have arrived, bool ``(replicas, agents, senders, numbers)`` or ``(..., 1)``.
        sent: Total that each sender has sent so far, ``(replicas, agents, senders, numbers)``.
        known: Of which numbers anything has arrived so far, bool, same shape.
        own: Which senders are the receiving agents themselves, bool ``(replicas, agents, senders)``.
        groups: Number of groups.
        share: In [0, 1/2].
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
                    # A share of 0.29 of 100 senders is 29, also where rounding makes it 28.99.
                    dropped = min(int(share * found + 1e-9), (found - 1) // 2)
                    middle = 0.0
                    for g in range(dropped, found - dropped):
                        middle += means[g]
                    total[r, j, i] += others * middle / (found - 2 * dropped)


@kernel
def _keep_nearest(arrived, sent, known, own, share, total):
    """Writes the mean of the senders nearest to the median, times the number of senders, for all rows with news.

    See :func:`_trim_groups` for arguments not named here.

    Args:
        arrived: Which numbers have arrived.
        sent: Total that each sender has sent.
        known: Of which numbers anything has arrived.
        own: Which senders are the receiving agents.
        share: Share of the senders that are dropped.
        total: Receives the result.
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
                # Without senders there is no median, and none is needed.
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
    """The total of each sender, which a kernel combines; each array is aggregated by itself."""

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
        """Writes the aggregate of one array; see :func:`_trim_groups`."""


@dataclass
class _Trimmed(_BySender):
    """An aggregator that drops a share of the senders, in [0, 0.5)."""

    share: float

    def __post_init__(self) -> None:
        """Checks the share.

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        require_number("share", self.share, 0, 0.5, open_above=True)


@dataclass
class TrimmedMean(_Trimmed):
    """Drops the largest and the smallest of what senders have sent, number by number.

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
    """Drops the senders whose numbers, all together, are furthest from the coordinate-wise median.

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
    """Takes the median of the means of groups of senders, number by number.

    Attributes:
        groups: Number of groups; sender s is in group s modulo that. Groups without a message are left out.

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
        """Checks the number of groups.

        Raises:
            TypeError: It is no integer.
            ValueError: It is < 1.
        """
        require_integer("groups", self.groups, 1)

    def _combine(self, arrived: Array, sent: Array, known: Array, own: Array, total: Array) -> None:
        _trim_groups(arrived, sent, known, own, int(self.groups), 0.5, total)
