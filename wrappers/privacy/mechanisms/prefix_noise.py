"""Noise of prefix sums, made of independent draws: the base class of all matrix mechanisms.

A window is the time between two releases of an agent, and x is the vector of the statistic's increments in windows 1 to
n. Each mechanism factorises the matrix of prefix sums (lower triangular, all ones) into B C: it adds independent noise
to C x and multiplies the result by B. One window affects one column of C, so privacy depends on the largest norm of a
column of C, and accuracy on the norms of the rows of B. No draw is used before its release, so that data of later
windows may depend on earlier releases.

If all data of an agent change, every window may change, each by a vector of at most a given norm. The joint change of
C x is then largest if all windows change by the same vector, provided that C^T C has no negative entry: it is that norm
times the norm of C 1, the sum of all columns. In general its square is bounded by the sum of |C^T C|.

References:
    * S. Denisov, B. McMahan, K. Rush, A. Smith, A. Thakurta: Improved Differential Privacy for SGD via Optimal Private
      Linear Operators on Adaptive Streams. NeurIPS 2022.
    * C. Choquette-Choo, B. McMahan, K. Rush, A. Thakurta: Multi-Epoch Matrix Factorization Mechanisms for Private
      Machine Learning. ICML 2023.
"""

from abc import ABC, abstractmethod
from copy import deepcopy

import numpy as np

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

    def sum_square(self, z: int) -> float:
        """Returns the squared norm of C 1 for C's first z rows, or, as needed, a bound on it; 1 <= z <= ``releases``.

        It determines the privacy loss of the first z releases if all data of an agent change: it is the largest squared
        norm of the change of C x if each window changes by a vector of norm 1. By default it is the sum of the absolute
        entries of C^T C, calculated from the noise that :meth:`advance` returns; subclasses have faster formulas.
        """
        noise, drawn = deepcopy(self), [self.draws(t) for t in range(1, z + 1)]
        # One row for each draw, which is 1 in this row and 0 in all others.
        unit, rows = np.eye(sum(drawn))[..., np.newaxis], np.arange(sum(drawn))
        noise.start(len(rows), 1)
        parts = np.split(unit, np.cumsum(drawn)[:-1])
        # Releases are x plus these weights times the draws. So their information on x is C^T C = (W W^T)^-1.
        weights = np.array([noise.advance(rows, t, part)[:, 0] for t, part in enumerate(parts, 1)])
        return float(np.abs(np.linalg.inv(weights @ weights.T)).sum())

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
