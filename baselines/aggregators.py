"""Aggregators: rules that combine the arrays which an agent has received from others.

Agents send statistics that are meant to be added up. An aggregator computes the array that is used as their sum:

| name | arguments | array that is used as the sum |
|---|---|---|
| `sum` | | the sum |
| `precision` | `reward_variance` | statistics of as many exact observations as are as informative as the messages |
| `trimmed_mean` | `share` | the mean without the `share` of senders at either end, times their number |
| `median_of_means` | `groups` | the median of the means of groups of senders, times the number of senders |
| `trimmed_senders` | `share` | the mean without the `share` of senders furthest from the median, times their number |

All five work on named arrays of any shape (:class:`~fedbandit_envs.baselines.aggregators.InboxSpec`): counts
of pulls and successes, Gram matrices and moments, or the sums of a user-defined problem. `precision` must also know how
many exact observations are as informative as a noisy array, as it does for counts and for sums of [x; y][x; y]^T.

The last three are robust: they look at the total that each sender has sent so far, and estimate the sum well where all
senders have the same distribution. They cannot be moved beyond the numbers that some honest senders sent while
dishonest senders are no more than the senders dropped (at one end), or fewer than half of the groups. `precision` is
not robust: it believes a sender that announces less noise than it has added.

`trimmed_mean` (Yin, Chen, Ramchandran and Bartlett, ICML 2018) and `median_of_means` (Nemirovsky and Yudin, 1983) treat
each number by itself, so that different numbers come from different senders. In a regression the moments and the Gram
matrix then come from different data, which biases the estimate. `trimmed_senders` keeps or drops whole senders by their
distance from the coordinate-wise median (as Krum does by pairwise distances; Blanchard, El Mhamdi, Guerraoui and
Stainer, NeurIPS 2017), so that the moments and Gram matrices that it keeps come from the same data.

Where the transport also delivers an agent's own messages to it (an echo), these are added in full and never dropped.

Policies take an aggregator as an object or as its JSON-able specification: a name, ``"sum"``, or a mapping of the name
and the arguments, ``{"name": "trimmed_mean", "share": 0.25}``.

**Weights by precision.** Messages announce the variance of their noise (:mod:`fedbandit_envs.core.privacy`). The
received statistics are replaced by those of as many exact observations as are equally informative, and added to the
agent's own data, which stay exact. So pure noise counts for next to nothing, messages without data do not harm, and no
message need be checked and no estimate regularised because of noise. The numbers of exact observations are plug-in
estimates, not bounds.

`precision` is not robust: a sender that announces less noise than it has added counts for more than it should, as
does a sender that multiplies its statistics by a factor.

**Counts of binary outcomes.** A message (w, y) states that y of w outcomes were successes, both with noise; r = y / w,
clipped to [0, 1], estimates the success probability q. With variances v_w and v_y of the noise and their covariance
v_wy the variance of r is about (v_y - 2 r v_wy + r^2 v_w + q (1 - q) w) / w^2. The mean of n = q (1 - q) / variance
exact outcomes has the same variance, so the message counts as n outcomes, n r of them successes. The unknown q is
replaced by (Y + 1) / (W + 2), clipped to [0.02, 0.98], where W and Y are the agent's own counts plus those received
before this round. Where w <= 4 sqrt(v_w) the quotient is meaningless, and n is 0.

Does the confidence radius sqrt(ln(1 / failure) / (2 W)) hold with W = own counts + sum n? Where w is exact (randomised
response) and the weights n are taken as fixed, n r is sub-Gaussian with variance proxy at most n / 4, since
n <= 1 / (4 v_y / w^2 + 1 / w) whatever q is, if v_y is a variance proxy of the noise; so the radius holds as it does
for W exact outcomes. But weights follow from the messages, r is clipped, and a noisy w makes r a quotient with a bias
of second order, up to a sixteenth at w = 4 sqrt(v_w). No bound of these effects is known, and none for a radius with
tuned constants.

Where the noises of an agent's messages depend on each other, as in continual release, a variance is known only of the
sum of its messages. Then all received messages are weighed together, as one sum.

**Sums of [x; y][x; y]^T.** A received sum has a Gram matrix G of contexts x and a moment b of rewards times contexts,
with noise N and h. Let G + N = sum_i g_i v_i v_i^T be the eigenvalue decomposition of the sum over all messages, whose
noise has variance nu on the diagonal and nu / 2 elsewhere. The error h - N theta then has about the variance nu in
every direction, where ||theta|| <= 1, besides R^2 g_i from the rewards, R^2 being the variance of one reward. So in
direction v_i the sum is as informative as k_i = g_i^2 / (g_i + nu / R^2) exact observations, and the moment becomes
k_i / g_i times the noisy one. But noise alone has eigenvalues up to about sqrt(2 d nu) in d dimensions (the edge of
Wigner's semicircle). So in k_i the root of g_i^2 - 2 (d + 1) nu stands for g_i, and k_i is 0 where g_i or this square
is not positive: messages of noise alone count for next to nothing. The formula is applied to the sum of all messages.
Message by message it would trust directions in which noise made the g_i of one message too large, and the noise of
different messages would no longer cancel. No bound of the error is known.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays, stored
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.inbox import add_received
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import COVARIANCE, independent, variance_of
from fedbandit_envs.linear.actions import weighed


class InboxSpec(NamedTuple):
    """Names and shapes of the arrays in the messages that agents receive.

    Attributes:
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
        senders: Number of senders whose messages arrive separately; 1 for a server.
        shapes: Shape of each array in one message, by name.
        echoed: Whether agents receive their own messages.
        independent: Whether the noises of a sender's messages are independent; if not, a variance is known only of the
            sum of all messages of a sender so far.
        weigh: Takes the variance of a reward, or None for the environment's, and returns the aggregator that replaces
            noisy arrays by those of equally informative exact observations; None where no such aggregator exists.

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
    weigh: "Callable[[float | None], Aggregator] | None" = None

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
        if arrived.shape[3] == 1:
            add_received(observation, self.totals, arrived[..., 0], weight)
            return
        for name, total in self.totals.items():
            used = np.where(arrived, stored(observation[f"inbox_{name}"]), 0.0)
            total += weight * used.sum(axis=2).reshape(total.shape)


def _trim_groups(sent: Array, known: Array, groups: int, share: float) -> Array:
    """Returns the trimmed mean of the means of groups of senders, times the number of senders, number by number.

    Sender s is in group s modulo ``groups``. The group means are sorted, and the ``share`` at either end is dropped,
    though never all of them: with a share of one half the median of the group means remains.

    Terms are added in a fixed order, by ``cumsum``, so that no row's last bit depends on the rows beside it. Rows are
    agents of replicas.

    Args:
        sent: Total that each sender has sent so far, ``(rows, senders, numbers)``.
        known: Which numbers each sender has sent, bool, same shape.
        groups: Number of groups.
        share: Share of the group means that is dropped at either end, in [0, 1/2].
    """
    rows, senders, numbers = sent.shape
    sums, sizes = np.zeros((2, rows, groups, numbers))
    for s in range(senders):
        sums[:, s % groups] += np.where(known[:, s], sent[:, s], 0.0)
        sizes[:, s % groups] += known[:, s]
    means = np.sort(np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf), axis=1)
    found = (sizes > 0).sum(axis=1, keepdims=True)
    # The small constant undoes rounding errors: 0.29 * 100 is slightly below 29 in floating point, and would be cut to
    # 28.
    dropped = np.minimum((share * found + 1e-9).astype(np.int64), np.maximum(found - 1, 0) // 2)
    place = np.arange(groups)[:, np.newaxis]
    kept = (place >= dropped) & (place < found - dropped)
    middle = np.cumsum(np.where(kept, means, 0.0), axis=1)[:, -1]
    return known.sum(axis=1) * middle / np.maximum(kept.sum(axis=1), 1)


class _BySender(Aggregator):
    """Base class of robust aggregators: it keeps the total of each sender, and a subclass combines these totals.

    Each array of a message is combined separately.
    """

    def _begin(self, inbox: InboxSpec) -> None:
        super()._begin(inbox)
        self._own = np.zeros((*inbox.rows, inbox.senders), np.bool_)
        sizes = {name: int(np.prod(shape)) for name, shape in inbox.shapes.items()}
        self._sent = {name: np.zeros((*self._own.shape, size)) for name, size in sizes.items()}
        self._known = {name: np.zeros(sent.shape, np.bool_) for name, sent in self._sent.items()}

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        if "inbox_own" in observation:
            self._own |= observation["inbox_own"]
        # The totals of agents that have received nothing in this round do not change.
        news = arrived.any(axis=(2, 3))
        if not news.any():
            return
        own = self._own[news][..., np.newaxis]
        for name, sent in self._sent.items():
            known, total = self._known[name], self.totals[name]
            known |= arrived
            np.add(sent, weight * observation[f"inbox_{name}"].reshape(sent.shape), out=sent, where=arrived)
            # What an agent has sent to itself is added in full.
            others = self._combined(sent[news], known[news] & ~own)
            combined = np.where(own, sent[news], 0.0).sum(axis=1) + others
            total[news] = combined.reshape(-1, *total.shape[2:])

    def _combined(self, sent: Array, known: Array) -> Array:
        """Returns what stands for the sum of the other senders' totals; arguments as in :func:`_trim_groups`."""
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

    def _combined(self, sent: Array, known: Array) -> Array:
        return _trim_groups(sent, known, sent.shape[1], self.share)


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

    def _combined(self, sent: Array, known: Array) -> Array:
        many = known.sum(axis=1, keepdims=True)
        values = np.sort(np.where(known, sent, np.inf), axis=1)
        middle = np.maximum(many - 1, 0) // 2, many // 2
        low, high = (np.take_along_axis(values, at, axis=1) for at in middle)
        # A number that nobody has sent has no median, and nothing is added to the total.
        centre = np.where(many > 0, 0.5 * (low + high), 0.0)
        count = known.sum(axis=2)
        square = np.cumsum(np.where(known, (sent - centre) ** 2, 0.0), axis=2)[..., -1]
        order = np.where(count > 0, square / np.maximum(count, 1), np.inf).argsort(axis=1, kind="stable")
        found = (count > 0).sum(axis=1, keepdims=True)
        near = np.arange(sent.shape[1]) < found - (self.share * found + 1e-9).astype(np.int64)
        by_distance = order[..., np.newaxis]
        kept = np.take_along_axis(known, by_distance, axis=1) & near[..., np.newaxis]
        nearest = np.take_along_axis(sent, by_distance, axis=1)
        sums = np.where(kept, nearest, 0.0).cumsum(axis=1)[:, -1]
        number = kept.sum(axis=1)
        return many[:, 0] * np.where(number > 0, sums / np.maximum(number, 1), centre[:, 0])


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

    def _combined(self, sent: Array, known: Array) -> Array:
        return _trim_groups(sent, known, self.groups, 0.5)


@dataclass
class Precision(Aggregator):
    r"""An aggregator that replaces noisy sums by statistics of as many exact observations as are equally informative.

    **Counts.** A message says that $y$ of $w$ outcomes were successes. Its noise has the variances $v_y$ and $v_w$ and
    the covariance $v_{wy}$. With $r = y / w$, clipped to $[0, 1]$, it counts as

    $$n = \frac{q (1 - q) \, w^2}{v_y - 2 r v_{wy} + r^2 v_w + q (1 - q) w}$$

    exact outcomes, $n r$ of them successes, or as none where $w \le 4 \sqrt{v_w}$. For the unknown success probability
    $q$ stands $(Y + 1) / (W + 2)$, clipped to $[0.02, 0.98]$, of all outcomes that were known before: $Y$ successes of
    $W$.

    **Gram matrices.** Let $g_i$ be the eigenvalues of the sum of all received Gram matrices, $\nu$ the variance of the
    noise in it, and $R^2$ the variance of a reward. In the direction of eigenvector $i$ the sum counts as

    $$k_i = \frac{h_i^2}{h_i + \nu / R^2}, \qquad h_i = \sqrt{\max(g_i^2 - 2 (d + 1) \nu, \, 0)}$$

    exact observations, and the moment is multiplied by $k_i / g_i$. Where $g_i \le 0$, $k_i$ is 0.

    Attributes:
        reward_variance: R^2 > 0, the variance of one reward, used for Gram matrices; None for the environment's public
            ``reward_variance``, or where there is none for 1/4, the largest variance of a reward in [0, 1]. For counts
            of binary outcomes the variance follows from the counts.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import Precision, count_inbox
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Channel
        >>> spec = Channel(parallel_env(num_agents=3, num_arms=2)).policy_spec
        >>> aggregate = Precision().start(count_inbox(spec, (1, 1), "pulls", "successes"))
        >>> aggregate.totals["pulls"]
        array([[[0., 0.]]])
    """

    reward_variance: float | None = None

    def __post_init__(self) -> None:
        """Checks that ``reward_variance`` is None or a finite number > 0.

        Raises:
            TypeError: The variance is no number.
            ValueError: The variance is not > 0, or infinite.
        """
        if self.reward_variance is not None:
            require_number("reward_variance", self.reward_variance, 0, np.inf, open_below=True)

    def start(self, inbox: InboxSpec) -> Aggregator:
        """Returns the aggregator of such arrays that weighs them; see :meth:`Aggregator.start`."""
        if inbox.echoed:
            raise UnfitError("agents receive their own messages; echo=False is required with 'precision'")
        if inbox.weigh is None:
            raise UnfitError(
                f"'precision' cannot weigh {list(inbox.shapes)}; 'weigh' is required, as of count_inbox(...)"
            )
        return inbox.weigh(self.reward_variance).start(inbox)


def count_inbox(spec: PolicySpec, rows: tuple[int, ...], trials: str, successes: str) -> InboxSpec:
    """Returns the description of received counts of outcomes and successes, for aggregators.

    Args:
        spec: Public description of the environment, whose agents must receive messages.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
        trials: Name of the array of numbers of outcomes, as senders release it.
        successes: Name of the array of numbers of successes among these outcomes.
    """
    inbox = InboxSpec.of(spec, rows, trials, successes)
    return inbox._replace(independent=independent(spec.release), weigh=lambda variance: _WeighedCounts())


class _WeighedCounts(Aggregator):
    """Totals of exact outcomes that are as informative as noisy counts: message by message, or of all as one sum."""

    def _begin(self, inbox: InboxSpec) -> None:
        super()._begin(inbox)
        noise = (*map(variance_of, inbox.shapes), COVARIANCE)
        self._read = [f"inbox_{name}" for name in (*inbox.shapes, *noise)]
        values = inbox.shapes[next(iter(inbox.shapes))]
        self._sums = None if inbox.independent else np.zeros((5, *inbox.rows, 1, *values))

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        messages = np.zeros((5, *observation[self._read[0]].shape))
        for numbers, name in zip(messages, self._read, strict=True):
            if name in observation:
                np.copyto(numbers, observation[name], where=arrived)
        if self._sums is not None:
            self._sums += messages.sum(axis=3, keepdims=True)
            messages = self._sums
        # Received numbers of outcomes and successes, (replicas, agents, senders, values), 0 where nothing has arrived;
        # v_w, v_y and v_wy of the module's docstring; then what the agent knows already, (replicas, agents, values).
        w, y, of_w, of_y, of_both = messages
        known, good = (exact[name] + total for name, total in self.totals.items())
        quality = np.clip((good + 1.0) / (known + 2.0), 0.02, 0.98)[:, :, np.newaxis]
        spread = quality * (1.0 - quality)
        # Comparisons with a NaN are false, so that a NaN among the received numbers is left out.
        certain = (w > 4.0 * np.sqrt(np.maximum(of_w, 0.0))) & (w < np.inf)
        w = np.where(certain, w, 1.0)
        ratio = np.clip(y / w, 0.0, 1.0)
        noise = np.maximum(of_y - 2.0 * ratio * of_both + ratio * ratio * of_w, 0.0)
        outcomes = np.where(certain, w * (spread * w / (noise + spread * w)), 0.0)
        worth = np.zeros((2, *known.shape))
        for sender in range(w.shape[2]):
            worth += outcomes[:, :, sender], (outcomes * ratio)[:, :, sender]
        if self._sums is not None:
            # For an agent with new messages, the sum of all its messages since the start of the episode has just been
            # converted into exact outcomes. So this result replaces the agent's former total instead of being added to
            # it. The totals of agents without new messages do not change.
            news = arrived.any(axis=(2, 3))
            for total in self.totals.values():
                total[news] = 0.0
            worth[:, ~news] = 0.0
        for total, added in zip(self.totals.values(), worth, strict=True):
            total += weight * added


@kernel
def _know(own_trials, own_successes, received_trials, received_successes, trials, successes):
    """Writes the sums of own and received counts, after clipping the received ones to 0 <= successes <= trials."""
    for r in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            for k in range(trials.shape[2]):
                # Noise in messages can make the received counts negative, or successes more than trials.
                received = max(received_trials[r, j, k], 0.0)
                trials[r, j, k] = own_trials[r, j, k] + received
                good = min(max(received_successes[r, j, k], 0.0), received)
                successes[r, j, k] = own_successes[r, j, k] + good


class KnownCounts:
    """Counts of outcomes and successes that agents know: their own ones and the aggregate of received ones.

    Received outcomes that noise has made negative count as 0, and received successes are clipped to between 0 and the
    received outcomes.

    Attributes:
        trials: Numbers of outcomes after the last :meth:`update`, ``(replicas, agents, values)``; float64, or where
            nothing is received the observation's own array, which the environment's next round overwrites.
        successes: Numbers of successes among them, same shape.
        received: The started aggregator of received counts; None where agents receive no messages or ignore them.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Channel
        >>> env = Channel(parallel_env(num_agents=3, num_arms=2))
        >>> known = KnownCounts(Precision(), env.policy_spec, (1, 3), "pulls", "successes")
        >>> known.update(env.reset_batch([0]).observation)
        >>> known.trials.shape
        (1, 3, 2)
    """

    def __init__(
        self, pool: Aggregator | None, spec: PolicySpec, rows: tuple[int, ...], trials: str, successes: str
    ) -> None:
        """Prepares for an episode in which nothing is known yet.

        Args:
            pool: The aggregator of received counts; None to ignore them.
            spec: Public description of the environment.
            rows: Numbers of replicas and agents, ``(replicas, agents)``.
            trials: Name of the array of numbers of outcomes, as senders release it.
            successes: Name of the array of numbers of successes among these outcomes.

        Raises:
            UnfitError: The aggregator cannot combine the messages that agents receive.
        """
        self._names = trials, successes
        self.trials, self.successes = np.zeros((2, *rows, *(spec.observation[f"total_{trials}"].shape or ())))
        self.received: Aggregator | None = None
        if pool is not None and "inbox_mask" in spec.observation.spaces:
            self.received = pool.start(count_inbox(spec, rows, trials, successes))

    def update(self, observation: Arrays) -> None:
        """Adds newly received messages, and keeps what is known now.

        Args:
            observation: Own counts as ``total_x``, and messages, see :meth:`Aggregator.add`.
        """
        own = {name: observation[f"total_{name}"] for name in self._names}
        if self.received is None:
            # No copy, which would take longer than many an index.
            self.trials, self.successes = own.values()
            return
        if observation["inbox_mask"].any():
            self.received.add(observation, exact=own)
        _know(*own.values(), *self.received.totals.values(), self.trials, self.successes)


GRAM = "statistic"
"""Name of the array with sums of [x; y][x; y]^T, as senders release it."""

NOISE = variance_of(GRAM)
"""Name of the array with the variances of the noise in :data:`GRAM`, of which the diagonals are used."""


def reward_variance(spec: PolicySpec) -> float:
    """Returns R^2, the environment's public ``reward_variance``, > 0; without one 1/4, the largest in [0, 1]."""
    # Rewards without noise have the variance 0, by which the noise of messages cannot be divided.
    return max(float(spec.public.get("reward_variance", 0.25)), 1e-12)


def gram_inbox(spec: PolicySpec, rows: tuple[int, ...]) -> InboxSpec:
    """Returns the description of received sums of [x; y][x; y]^T, with variances of their noise where announced.

    Args:
        spec: Public description of the environment, whose agents must receive messages.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
    """
    inbox = InboxSpec.of(spec, rows, GRAM)
    # Messages hold one sum, or one sum for each of several estimators: then the array has one more leading axis.
    shape = inbox.shapes[GRAM] if len(inbox.shapes[GRAM]) == 3 else (1, *inbox.shapes[GRAM])
    noise = {NOISE: shape[:-1]} if f"inbox_{NOISE}" in spec.observation.spaces else {}
    known = reward_variance(spec)
    return inbox._replace(
        shapes={GRAM: shape, **noise}, weigh=lambda given: _WeighedGrams(known if given is None else given)
    )


def gram_arrays(observation: Arrays) -> Arrays:
    """Returns the observation with the received matrices of noise variances replaced by their diagonals.

    The arrays then have the shapes that :func:`gram_inbox` declares.
    """
    noise = observation.get(f"inbox_{NOISE}")
    if noise is None:
        return observation
    return {**observation, f"inbox_{NOISE}": np.diagonal(noise, axis1=-2, axis2=-1)}


def noise_of(totals: Mapping[str, Array], rows: tuple[int, ...]) -> Array:
    """Returns the largest variance of the noise on the diagonals of the received sums, ``(replicas, agents)``.

    Args:
        totals: The ``totals`` of an aggregator of these sums. Without an array of noise variances among them, because
            there is no noise or the aggregator has already accounted for it, the result is 0.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
    """
    if NOISE not in totals:
        return np.zeros(rows)
    return np.maximum(totals[NOISE].max(axis=(-2, -1)), 0.0)


@dataclass
class _WeighedGrams(Aggregator):
    """Gram matrices and moments of exact observations that are as informative as the sum of all messages."""

    reward_variance: float

    def _begin(self, inbox: InboxSpec) -> None:
        self._sum = Sum().start(inbox)
        # The totals hold no array of noise variances: the weights account for all noise.
        self.totals = {GRAM: np.zeros_like(self._sum.totals[GRAM])}

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        self._sum.add(observation, arrived, exact, weight)
        news = observation["inbox_mask"].any(axis=-1)
        total = self._sum.totals[GRAM]
        variance = noise_of(self._sum.totals, total.shape[:2])
        self.totals[GRAM][news] = weighed(total[news], variance[news], self.reward_variance)


AggregatorSpec = Aggregator | str | Mapping[str, Any]
"""The specification of an aggregator: the object, its name, or a mapping of ``name`` and its arguments."""

AGGREGATORS: dict[str, Callable[..., Aggregator]] = {
    "sum": Sum,
    "precision": Precision,
    "trimmed_mean": TrimmedMean,
    "median_of_means": MedianOfMeans,
    "trimmed_senders": TrimmedSenders,
}
"""The class of every aggregator, by the name that a specification gives it."""


def make_aggregator(spec: AggregatorSpec) -> Aggregator:
    """Returns the aggregator that a specification describes; an aggregator object is returned as it is.

    Args:
        spec: An aggregator, a name of :data:`AGGREGATORS`, or a mapping of ``name`` and the aggregator's arguments.

    Raises:
        TypeError: The specification is none of these, or has arguments that the aggregator does not take.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    return make("pool", spec, AGGREGATORS, Aggregator)
