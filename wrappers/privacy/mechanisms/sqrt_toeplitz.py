"""Noise of prefix sums by the square-root factorisation: the matrix of prefix sums is the square of a Toeplitz one."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise


class SqrtToeplitzNoise(PrefixNoise):
    """The square-root factorisation of prefix sums into B C with B = C (Fichtenberger, Henzinger, Upadhyay, ICML 2023).

    B and C are the lower-triangular Toeplitz matrix whose square is the matrix of prefix sums, with ones on and below
    the diagonal. Its coefficients f_k = binomial(2k, k)/4^k are those of the power series of (1 - x)^(-1/2). All random
    draws of an episode are kept, 8 bytes for each number, row (agent of a replica) and release, and the time of a
    release grows with the number of releases before it. For very many releases, a tree mechanism needs less of both.

    Example:
        >>> noise = SqrtToeplitzNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        1.391
    """

    def __init__(self, releases: int) -> None:
        """Prepares the coefficients for at most ``releases`` releases of each row, >= 1."""
        super().__init__(releases)
        k = np.arange(1, releases)
        self._coefficients = np.concatenate(([1.0], np.cumprod((2 * k - 1) / (2 * k))))
        self._squares = np.concatenate(([0.0], np.cumsum(self._coefficients**2)))
        # Coefficients for the increment of the noise between two prefix sums: those of (1 - x)^(1/2). They are computed
        # directly, since differences of nearly equal coefficients of (1 - x)^(-1/2) would lose digits.
        self._differences = np.concatenate(([1.0], -self._coefficients[1:] / (2 * k - 1)))

    def column_square(self, z: int) -> float:
        """Returns the squared norm of the first column of C's first z rows: f_0^2 + ... + f_(z-1)^2."""
        return float(self._squares[z])

    def sum_square(self, z: int) -> float:
        """Returns the sum over C's first z rows of the square of (f_0 + f_1 + ...), the sum of the row."""
        return float(np.square(np.cumsum(self._coefficients[:z])).sum())

    def variance(self, z: int) -> float:
        """Returns the squared norm of B's z-th row: f_0^2 + ... + f_(z-1)^2."""
        return float(self._squares[z])

    def start(self, rows: int, values: int) -> None:
        """Starts an episode and forgets all draws of the last one; memory grows with the number of releases."""
        self._draws = np.zeros((0, rows, values))
        self._ahead = np.zeros((0, rows, values))

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Returns the noise to add to the z-th release of some rows: a weighted sum of all draws so far.

        Draws of the present block of :data:`_BLOCK` releases are summed here; the sum of those of earlier blocks was
        prepared when the block began.
        """
        capacity, all_rows, values = self._draws.shape
        if z > capacity:
            grown = np.zeros((min(max(2 * capacity, _BLOCK), self.releases), all_rows, values))
            grown[:capacity] = self._draws
            self._draws = grown
        self._draws[z - 1, rows] = draws[0]
        which = slice(None) if len(rows) == all_rows else rows
        block, place = divmod(z - 1, _BLOCK)
        if block and not place:
            self._look_ahead(which, z - 1)
        increment = self._ahead[place, rows] if block else np.zeros((len(rows), values))
        recent = self._draws[block * _BLOCK : z, which].reshape(place + 1, -1)
        _filter(recent, self._differences, 0, increment.reshape(1, -1))
        return increment

    def _look_ahead(self, which: slice | Array, z: int) -> None:
        """Adds up what the draws of the first z releases contribute to the noise of each release of the next block."""
        if not len(self._ahead):
            self._ahead = np.zeros((_BLOCK, *self._draws.shape[1:]))
        past = self._draws[:z, which]
        # The last block may be shorter, since no more releases than planned take place.
        ahead = np.zeros((min(_BLOCK, self.releases - z), *past.shape[1:]))
        _filter(past.reshape(z, -1), self._differences, 1, ahead.reshape(len(ahead), -1))
        self._ahead[: len(ahead), which] = ahead


# Number of releases in a block; see `SqrtToeplitzNoise.advance`.
_BLOCK = 32
# Number of columns that are summed together, so that the numbers in use fit into a core's first-level cache.
_TILE = 64


@kernel
def _filter(past: Array, coefficients: Array, distance: int, out: Array) -> None:
    """Adds to each ``out[j]`` the sum over k of ``coefficients[distance + j + k] * past[-1 - k]``.

    The order of the additions is always the same, so that rounding is, too.

    Args:
        past: The draws of the releases so far, float64 ``(releases, columns)``.
        coefficients: Weights by distance in releases, float64, at least ``distance + following + releases - 1``.
        distance: Number of releases from the last of ``past`` to the first of ``out``.
        out: The sums that are added to, float64 ``(following, columns)``.
    """
    releases, columns = past.shape
    for start in range(0, columns, _TILE):
        stop = min(start + _TILE, columns)
        for k in range(releases):
            for j in range(len(out)):
                coefficient = coefficients[distance + j + k]
                for i in range(start, stop):
                    out[j, i] += coefficient * past[releases - 1 - k, i]
