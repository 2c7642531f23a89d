"""Noise of prefix sums, made of independent draws: the base class of all matrix mechanisms.

A window is the time between two releases of an agent, and x is the vector of the statistic's increments in windows 1 to
n. Each mechanism factorises the matrix of prefix sums (lower triangular, all ones) into B C: it adds independent noise
to C x and multiplies the result by B. One window affects one column of C, so privacy depends on the largest norm of a
column of C, and accuracy on the norms of the rows of B. No draw is used before its release, so that data of later
windows may depend on earlier releases.

Reference:
    S. Denisov, B. McMahan, K. Rush, A. Smith, A. Thakurta: Improved Differential Privacy for SGD via Optimal Private
    Linear Operators on Adaptive Streams. NeurIPS 2022.
"""

from abc import ABC, abstractmethod

from fedbandit_envs.basics.arrays import Array


class PrefixNoise(ABC):
    """The noise of prefix sums, for many rows (agents of replicas) and a planned number of releases of each.

    Rows have independent noise and may have different numbers of releases so far. Variances are in units of the
    variance of one draw.
    """

    def __init__(self, releases: int) -> None:
        """Takes the largest number of releases of a row, >= 1."""
        self.releases = releases

    @abstractmethod
    def column_square(self, z: int) -> float:
        """Returns the largest squared norm of a column of C's first z rows, or an upper bound on it.

        It determines the privacy loss of the first z releases; 1 <= z <= ``releases``.
        """

    @abstractmethod
    def variance(self, z: int) -> float:
        """Returns the variance of the noise in the sum of an agent's first z releases; 0 <= z <= ``releases``."""

    @property
    def worst_variance(self) -> float:
        """The largest variance of the noise in any of the prefix sums up to the planned number of releases.

        By default it is the variance in the last prefix sum; mechanisms whose variance does not grow with each release
        override this property.
        """
        return self.variance(self.releases)

    def draws(self, z: int) -> int:
        """Returns how many standard normal draws each number in the z-th release takes: 1 unless overridden."""
        return 1

    @abstractmethod
    def start(self, rows: int, values: int) -> None:
        """Starts an episode in which no row has released yet.

        Args:
            rows: Number of rows (agents of replicas).
            values: Number of independent noises that a row needs for one release.
        """

    @abstractmethod
    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Returns the noise to add to the z-th release of some rows.

        Args:
            rows: Indices of the rows, which have released z - 1 times before, in ascending order.
            z: The number of the release, counted from 1.
            draws: Standard normal numbers, float64 ``(draws, rows, values)``. They may be overwritten, and the result
                may share their memory.

        Returns:
            The noise of the z-th prefix sum minus the noise of the one before, float64 ``(rows, values)``.
        """
