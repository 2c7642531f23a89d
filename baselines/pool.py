"""Pools: how an agent puts together what it hears: added up, withstanding liars, or weighed by its noise.

What others tell of their statistics is meant to be added up. A pool says what stands for that sum:

| name | arguments | what stands for the sum |
|---|---|---|
| `sum` | | the sum |
| `precision` | `reward_variance` | exact observations, as many as it is worth, given the noise known to be in it |
| `trimmed_mean` | `share` | the mean without the `share` of senders at either end, times their number |
| `median_of_means` | `groups` | the median of the means of groups of senders, times the number of senders |
| `trimmed_senders` | `share` | the mean without the `share` of senders furthest from the median, times their number |

`precision` is not robust: a message that lies about the variance of its noise is a liar like another. What it does and
what that is worth is said in :mod:`fedbandit_envs.baselines.precision`.

The last three look at what each sender has told in all so far, number by number, and stand for the sum as long as
senders are alike: what is dropped is taken to be like what is kept. Liars who are no more than what is dropped (at one
end), or fewer than half of the groups, cannot move the result beyond what some honest senders say.

The first two of the three go by each number alone (Yin, Chen, Ramchandran and Bartlett, ICML 2018; means of groups are
Nemirovsky and Yudin's, 1983), so that different numbers come from different senders: a regression's moments then belong
to another Gram matrix than the one they stand beside, which biases it. The last drops or keeps senders as a whole, by
their distance from the median of all (as Krum does by distances from each other; Blanchard, El Mhamdi, Guerraoui and
Stainer, NeurIPS 2017), and what it keeps belongs together.

A sender is *heard* once something of it has arrived. What an agent hears of itself, where a channel echoes, is known to
be no lie: it is added in full and never dropped.

Wherever a pool is asked for, its JSON-able specification will do: a name, ``"sum"``, or a mapping of the name and the
arguments, ``{"name": "trimmed_mean", "share": 0.25}``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from fedbandit_envs.baselines.heard import CountsApart, GramsApart, PooledCounts, PooledGrams
from fedbandit_envs.baselines.pooled import Added, BySender, Pooled, combine, keep_nearest
from fedbandit_envs.baselines.precision import Precision
from fedbandit_envs.checks import require_integer, require_number
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.specification import make


@runtime_checkable
class Pool(Protocol):
    """Says how what is heard is put together."""

    @property
    def additive(self) -> bool:
        """Whether it is the sum, to which each message adds what it tells, whatever others do."""

    @property
    def weighs(self) -> bool:
        """Whether what stands for the sum has its noise reckoned with: it counts as exact observations do."""

    def counts(self, rows: tuple[int, ...], spaces: Spaces, names: tuple[str, str]) -> PooledCounts:
        """Starts an episode in which nothing has been heard, of counts of binary outcomes.

        Args:
            rows: ``(replicas, agents)``.
            spaces: What agents see and release; there is an inbox.
            names: Names in releases of how many outcomes there were, and of how many good ones.
        """

    def grams(self, rows: tuple[int, ...], spaces: Spaces) -> PooledGrams:
        """Starts an episode in which nothing has been heard, of sums of [x; y][x; y]^T, released as ``statistic``.

        Args:
            rows: ``(replicas, agents)``.
            spaces: What agents see and release; there is an inbox.
        """


PoolSpec = Pool | str | Mapping[str, Any]
"""Wherever a pool is asked for: one, a name, or a mapping of the name and the arguments."""


class NumberByNumber(ABC):
    """A pool of numbers that knows nothing of what they mean: noise is left in, for receivers to reckon with."""

    weighs: ClassVar[bool] = False

    @abstractmethod
    def begin(self, rows: tuple[int, ...], senders: int, numbers: int) -> Pooled:
        """Starts an episode in which nothing has been heard.

        Args:
            rows: ``(replicas, agents)``.
            senders: Number of senders that inboxes tell apart.
            numbers: How many numbers a message has.
        """

    def counts(self, rows: tuple[int, ...], spaces: Spaces, names: tuple[str, str]) -> PooledCounts:
        """Starts an episode; see :meth:`Pool.counts`."""
        return CountsApart(self.begin, rows, spaces, names)

    def grams(self, rows: tuple[int, ...], spaces: Spaces) -> PooledGrams:
        """Starts an episode; see :meth:`Pool.grams`."""
        return GramsApart(self.begin, rows, spaces)


@dataclass(frozen=True)
class Sum(NumberByNumber):
    """Adds up what is heard: right where all are honest, and whatever a single liar wants it to be."""

    additive: ClassVar[bool] = True

    def begin(self, rows: tuple[int, ...], senders: int, numbers: int) -> Pooled:
        """Starts an episode; see :meth:`NumberByNumber.begin`."""
        return Added(rows, numbers)


@dataclass(frozen=True)
class _Trimmed(NumberByNumber):
    """What drops a share of the senders heard, in [0, 0.5)."""

    share: float
    additive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuses a share out of range.

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        require_number("share", self.share, 0, 0.5, open_above=True)


@dataclass(frozen=True)
class TrimmedMean(_Trimmed):
    """Drops the largest and the smallest of what senders have told, number by number.

    Attributes:
        share: Of the senders heard, how many are dropped at either end, rounded down; in [0, 0.5).
    """

    def begin(self, rows: tuple[int, ...], senders: int, numbers: int) -> Pooled:
        """Starts an episode; see :meth:`NumberByNumber.begin`."""
        return BySender(rows, senders, numbers, combine, senders, float(self.share))


@dataclass(frozen=True)
class TrimmedSenders(_Trimmed):
    """Drops the senders whose numbers, all together, are furthest from the median of all, number by number.

    Attributes:
        share: Of the senders heard, how many are dropped, rounded down; in [0, 0.5).
    """

    def begin(self, rows: tuple[int, ...], senders: int, numbers: int) -> Pooled:
        """Starts an episode; see :meth:`NumberByNumber.begin`."""
        return BySender(rows, senders, numbers, keep_nearest, float(self.share))


@dataclass(frozen=True)
class MedianOfMeans(NumberByNumber):
    """Takes the median of the means of groups of senders, number by number.

    Attributes:
        groups: How many there are; sender s is in group s modulo that. Groups of which nobody was heard are left out.
    """

    groups: int
    additive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuses a number out of range.

        Raises:
            TypeError: It is no integer.
            ValueError: It is < 1.
        """
        require_integer("groups", self.groups, 1)

    def begin(self, rows: tuple[int, ...], senders: int, numbers: int) -> Pooled:
        """Starts an episode; see :meth:`NumberByNumber.begin`."""
        return BySender(rows, senders, numbers, combine, int(self.groups), 0.5)


POOLS: dict[str, Callable[..., Pool]] = {
    "sum": Sum,
    "precision": Precision,
    "trimmed_mean": TrimmedMean,
    "median_of_means": MedianOfMeans,
    "trimmed_senders": TrimmedSenders,
}
"""Every pool by the name that its specification has."""


def make_pool(spec: PoolSpec) -> Pool:
    """Makes a pool from its specification; a pool passes through.

    Args:
        spec: A pool, a name of :data:`POOLS`, or a mapping of ``name`` and the pool's arguments.

    Raises:
        TypeError: The specification is none of these, or has arguments the pool does not know.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    return make("pool", spec, POOLS, Pool)
