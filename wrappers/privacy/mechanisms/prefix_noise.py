"""Noise of prefix sums, made of independent draws: what all matrix mechanisms have in common.

A window is what happens between two releases, and x are the increments of the windows. Each mechanism factorises the
matrix of their prefix sums, over windows 1 .. z for z = 1 .. n, into B C: noise is added to C x and B is applied to the
result. One window shows in one column of C, so its largest column norm is what counts for privacy, and
the norms of B's rows for accuracy. No draw is used before its release, so later windows may depend on what has been
released.

Reference:
    S. Denisov, B. McMahan, K. Rush, A. Smith, A. Thakurta: Improved Differential Privacy for SGD via Optimal Private
    Linear Operators on Adaptive Streams. NeurIPS 2022.
"""

from abc import ABC, abstractmethod

from fedbandit_envs.basics.arrays import Array


class PrefixNoise(ABC):
    """Noise of the prefix sums of a planned number of releases, for many independent rows.

    Variances are in units of that of one draw. Rows may be at different releases.
    """

    def __init__(self, releases: int) -> None:
        """Prepares for a number of releases of each row, >= 1."""
        self.releases = releases

    @abstractmethod
    def column_square(self, z: int) -> float:
        """Returns the largest squared norm of a column of C's first z rows, or more; 1 <= z <= releases."""

    @abstractmethod
    def variance(self, z: int) -> float:
        """Returns the variance of the noise on the z-th prefix sum; 0 <= z <= releases."""

    @property
    def worst_variance(self) -> float:
        """The largest of :meth:`variance` over the planned releases: the last one's, where it grows with z."""
        return self.variance(self.releases)

    def draws(self, z: int) -> int:
        """Returns how many standard normal draws a value's z-th release takes: 1, unless a mechanism needs more."""
        return 1

    @abstractmethod
    def start(self, rows: int, values: int) -> None:
        """Forgets all noise, and starts with a number of rows that have not released yet."""

    @abstractmethod
    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Makes the noise of some rows' z-th release.

        Args:
            rows: Indices of rows that have released z - 1 times, in rising order.
            z: From 1 on.
            draws: Standard normal, float64 ``(draws, rows, values)``; used up, whose memory may be the result's.

        Returns:
            The noise of the z-th prefix sum less that of the one before it, float64 ``(rows, values)``.
        """
