"""What has been heard in an episode, as the problems have it: counts of binary outcomes, and Gram matrices.

Here each number is pooled by itself; :mod:`fedbandit_envs.baselines.precision` weighs numbers that belong together.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.pooled import Pooled
from fedbandit_envs.spaces import Spaces

Begin = Callable[[tuple[int, ...], int, int], Pooled]
"""Starts an episode, given ``(replicas, agents)``, the number of senders and that of numbers."""


class PooledCounts(Protocol):
    """What rows have heard of counts, put together; row (r, j) depends on what row (r, j) has seen alone."""

    @property
    def total(self) -> Array:
        """What stands for the sum of all outcomes, float64 ``(replicas, agents, values)``: always the same array."""

    @property
    def good(self) -> Array:
        """What stands for that of the good ones among them, likewise."""

    def add(self, observation: Arrays, own: tuple[Array, Array], arrived: Array, weight: float = 1.0) -> None:
        """Takes in an inbox.

        Args:
            observation: What agents see.
            own: Their own counts, of all outcomes and of good ones, ``(replicas, agents, values)``.
            arrived: What is to be taken in, bool ``(replicas, agents, senders, values)``; or ``(..., 1)``.
            weight: Multiplies what is told.
        """


class PooledGrams(Protocol):
    """What rows have heard of sums of [x; y][x; y]^T, put together; row by row as :class:`PooledCounts`."""

    @property
    def statistic(self) -> Array:
        """What stands for the sum, float64 ``(replicas, agents, estimators, dim + 1, dim + 1)``."""

    @property
    def variance(self) -> Array:
        """That of the noise in it, on the diagonal, ``(replicas, agents)``: 0 where it is reckoned with already."""

    def add(self, observation: Arrays) -> None:
        """Takes in an inbox."""


class CountsApart:
    """All outcomes and the good ones, each number by itself; noise is not reckoned with."""

    def __init__(self, begin: Begin, rows: tuple[int, ...], spaces: Spaces, names: tuple[str, str]) -> None:
        """Prepares for an episode in which nothing has been heard.

        Args:
            begin: Makes what stands for the sum of some numbers.
            rows: ``(replicas, agents)``.
            spaces: What agents see and release; there is an inbox.
            names: Names in releases of how many outcomes there were, and of how many good ones.
        """
        senders, values = spaces.observation[f"inbox_{names[0]}"].shape or (0, 0)
        self._totals, self._goods = (begin(rows, senders, values) for _ in names)
        self._names = names

    @property
    def total(self) -> Array:
        """See :attr:`PooledCounts.total`."""
        return self._totals.total

    @property
    def good(self) -> Array:
        """See :attr:`PooledCounts.good`."""
        return self._goods.total

    def add(self, observation: Arrays, own: tuple[Array, Array], arrived: Array, weight: float = 1.0) -> None:
        """Takes in an inbox; see :meth:`PooledCounts.add`."""
        echoed = observation.get("inbox_own")
        for pooled, name in zip((self._totals, self._goods), self._names, strict=True):
            pooled.add(arrived, observation[f"inbox_{name}"], echoed, weight)


class GramsApart:
    """Each number by itself; what the noise does is for the receiver to reckon with."""

    def __init__(self, begin: Begin, rows: tuple[int, ...], spaces: Spaces) -> None:
        """Prepares for an episode in which ``inbox_statistic`` is heard."""
        senders, *numbers = spaces.observation["inbox_statistic"].shape or (0, 0, 0)
        self._shape = (*rows, *((1, *numbers) if len(numbers) == 2 else numbers))
        self._numbers = begin(rows, senders, int(np.prod(numbers)))
        self._variances = begin(rows, senders, int(np.prod(numbers[:-1])))

    @property
    def statistic(self) -> Array:
        """See :attr:`PooledGrams.statistic`."""
        # A view made at need, since one that is kept would be copied apart from what it shows.
        return self._numbers.total.reshape(self._shape)

    @property
    def variance(self) -> Array:
        """See :attr:`PooledGrams.variance`."""
        variance: Array = np.maximum(self._variances.total.max(axis=-1), 0.0)
        return variance

    def add(self, observation: Arrays) -> None:
        """Takes in an inbox; see :meth:`PooledGrams.add`."""
        mask, own = observation["inbox_mask"], observation.get("inbox_own")
        arrived = mask[..., np.newaxis]
        self._numbers.add(arrived, observation["inbox_statistic"].reshape(*mask.shape, -1), own)
        announced = observation.get(f"inbox_{variance_of('statistic')}")
        if announced is not None:
            diagonal = np.diagonal(announced, axis1=-2, axis2=-1).reshape(*mask.shape, -1)
            self._variances.add(arrived, diagonal, own)
