"""The base class of aggregators, the description of the arrays that they combine, and all but one aggregator.

These are the plain sum, and trimmed means and medians of the totals that senders have sent so far (compiled).
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, kernel
from fedbandit_envs.core.policy_spec import PolicySpec


class InboxSpec(NamedTuple):
    """Names and shapes of the arrays in the messages that agents receive.

    Attributes:
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
        senders: Number of senders whose messages arrive separately; 1 for a server.
        shapes: Shape of each array in one message, by name.
        echoed: Whether agents receive their own messages.
        independent: Whether the noises of a sender's messages are independent; if not, a variance is known only of the
            sum of all messages of a sender so far.
        weigh: Takes the variance of a reward, and returns the aggregator that replaces noisy arrays by those of equally
            informative exact observations; None where no such aggregator exists.

    Example:
        >>> inbox = InboxSpec(rows=(1, 4), senders=4, shapes={"pulls": (10,), "sum": (10,)})
        >>> sorted(inbox.shapes), inbox.echoed
        (['pulls', 'sum'], False)
    """

    rows: tuple[int, ...]
    senders: int
    shapes: Mapping[str, tuple[int, ...]]
    echoed: bool = False
    independent: bool = True
    weigh: "Callable[[float], Aggregator] | None" = None

    @classmethod
    def of(cls, spec: PolicySpec, rows: tuple[int, ...], *names: str) -> "InboxSpec":
        """Returns the description of some of the arrays that agents of an environment receive.

        Args:
            spec: Public description of the environment, whose agents must receive messages.
            rows: Numbers of replicas and agents, ``(replicas, agents)``.
            *names: Names of the arrays, as senders release them (without the prefix ``inbox_``).

        Raises:
            UnfitError: Agents receive other arrays, as where they write messages.
        """
        if missing := [name for name in names if f"inbox_{name}" not in spec.observation.spaces]:
            raise UnfitError(f"messages contain {sorted(spec.release)}; {missing} is required among them")
        boxes = {name: spec.observation[f"inbox_{name}"].shape or (0,) for name in names}
        shapes = {name: tuple(shape[1:]) for name, shape in boxes.items()}
        return cls(rows, boxes[names[0]][0], shapes, "sent" in spec.observation.spaces)


@dataclass
class Aggregator:
    """The base class of rules that combine all messages which an agent has received into one array for each name.

    The object that a user makes holds settings only; :meth:`start` returns a copy that aggregates one episode. The
    totals of row (r, j) depend only on the messages that agent j of replica r has received.

    Attributes:
        totals: Of a started aggregator, the combined arrays by name, float64 ``(replicas, agents, *shape)``;
            :meth:`add` updates them in place.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import Aggregator, InboxSpec
        >>> class Largest(Aggregator):
        ...     def _add(self, observation, arrived, exact, weight):
        ...         for name, total in self.totals.items():
        ...             total[...] = np.maximum(total, weight * observation[f"inbox_{name}"].max(axis=2))
        >>> aggregate = Largest().start(InboxSpec(rows=(1, 1), senders=3, shapes={"pulls": (2,)}))
        >>> mask, pulls = np.ones((1, 1, 3), bool), np.arange(6).reshape(1, 1, 3, 2)
        >>> aggregate.add({"inbox_mask": mask, "inbox_pulls": pulls})
        >>> aggregate.totals["pulls"]
        array([[[4., 5.]]])
    """

    def start(self, inbox: InboxSpec) -> "Aggregator":
        """Returns an aggregator with the same settings for an episode in which nothing has been received yet.

        Args:
            inbox: Names and shapes of the arrays that agents will receive.

        Raises:
            UnfitError: The aggregator cannot combine arrays of this kind.
        """
        started = copy(self)
        started._begin(inbox)
        return started

    def add(
        self,
        observation: Arrays,
        arrived: Array | None = None,
        exact: Arrays | None = None,
        weight: float = 1.0,
    ) -> None:
        """Adds the messages of one round to the totals.

        Args:
            observation: Holds the array ``x`` of each message as ``inbox_x``, ``(replicas, agents, senders, *shape)``;
                with ``inbox_mask``, which tells the messages that have arrived, and, where agents receive their own
                messages, ``inbox_own``, which tells those, both bool ``(replicas, agents, senders)``.
            arrived: Which numbers of the messages are used, bool ``(replicas, agents, senders, numbers)``, or
                ``(..., 1)`` for whole messages; None for all messages that have arrived.
            exact: The agent's own exact arrays by name, ``(replicas, agents, *shape)``; needed only by aggregators for
                which the weight of a message depends on what the agent knows already.
            weight: Factor by which the received arrays are multiplied.
        """
        if arrived is None:
            arrived = observation["inbox_mask"][..., np.newaxis]
        self._add(observation, arrived, exact or {}, weight)

    def _begin(self, inbox: InboxSpec) -> None:
        """Prepares the copy that :meth:`start` has made for an episode; by default sets all totals to 0."""
        self.totals = {name: np.zeros((*inbox.rows, *shape)) for name, shape in inbox.shapes.items()}

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        """Adds the messages of one round to the totals; arguments as in :meth:`add`, but never None."""
        raise NotImplementedError


@kernel
def _add_up(arrived, received, weight, total):
    """Adds the received numbers of all senders, times the weight, to the totals; see :meth:`Aggregator.add`."""
    whole = arrived.shape[3] == 1
    for r in range(received.shape[0]):
        for j in range(received.shape[1]):
            for s in range(received.shape[2]):
                if whole:
                    if arrived[r, j, s, 0]:
                        for i in range(received.shape[3]):
                            total[r, j, i] += weight * received[r, j, s, i]
                else:
                    for i in range(received.shape[3]):
                        if arrived[r, j, s, i]:
                            total[r, j, i] += weight * received[r, j, s, i]


class Sum(Aggregator):
    """The sum of all received messages: exact if all senders are honest, and not robust against one that is not.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import InboxSpec, Sum
        >>> aggregate = Sum().start(InboxSpec(rows=(1, 1), senders=3, shapes={"pulls": (2,)}))
        >>> mask, pulls = np.array([[[True, True, False]]]), np.ones((1, 1, 3, 2))
        >>> aggregate.add({"inbox_mask": mask, "inbox_pulls": pulls})
        >>> aggregate.totals["pulls"]
        array([[[2., 2.]]])
    """

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        for name, total in self.totals.items():
            messages = observation[f"inbox_{name}"]
            messages = messages.reshape(*messages.shape[:3], -1)
            _add_up(arrived, messages, weight, total.reshape(*total.shape[:2], -1))


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

    def _combine(self, arrived: Array, sent: Array, known: Array, own: Array, total: Array) -> None:
        """Combines the senders' totals of one array into ``total``; arguments as in :func:`_trim_groups`."""
        raise NotImplementedError


@dataclass
class TrimmedMean(_BySender):
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

    share: float

    def __post_init__(self) -> None:
        """Checks that ``share`` is a number in [0, 0.5).

        Raises:
            TypeError: The share is no number.
            ValueError: The share is not in [0, 0.5).
        """
        require_number("share", self.share, 0, 0.5, open_above=True)

    def _combine(self, arrived: Array, sent: Array, known: Array, own: Array, total: Array) -> None:
        _trim_groups(arrived, sent, known, own, own.shape[2], float(self.share), total)


class TrimmedSenders(TrimmedMean):
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
