"""The square root of the prefix sums."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise


class SqrtToeplitzNoise(PrefixNoise):
    """B = C = the lower-triangular Toeplitz matrix whose square has ones alone: f_k = binomial(2k, k)/4^k.

    (Fichtenberger, Henzinger and Upadhyay, ICML 2023; the coefficients are those of (1 - x)^(-1/2).) All draws are
    kept, 8 bytes a draw, row and release, and the time of a release grows with those before it. For very many releases
    take a tree.

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
        # Of an increment: those of (1 - x)^(1/2), as differences of equals would lose digits.
        self._differences = np.concatenate(([1.0], -self._coefficients[1:] / (2 * k - 1)))

    def column_square(self, z: int) -> float:
        """Returns the squared norm of the first column: f_0^2 + ... + f_(z-1)^2."""
        return float(self._squares[z])

    def variance(self, z: int) -> float:
        """Returns the squared norm of the z-th row, which is the same."""
        return float(self._squares[z])

    def start(self, rows: int, values: int) -> None:
        """Starts with no draws; memory is taken as it is needed."""
        self._draws = np.zeros((0, rows, values))
        self._ahead = np.zeros((0, rows, values))

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Filters all draws until now: those of earlier blocks as prepared, those of this block directly."""
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
        """Prepares what the first z draws contribute to the next block: they are read but once a block."""
        if not len(self._ahead):
            self._ahead = np.zeros((_BLOCK, *self._draws.shape[1:]))
        past = self._draws[:z, which]
        # Beyond the plan nothing is released.
        ahead = np.zeros((min(_BLOCK, self.releases - z), *past.shape[1:]))
        _filter(past.reshape(z, -1), self._differences, 1, ahead.reshape(len(ahead), -1))
        self._ahead[: len(ahead), which] = ahead


_BLOCK = 32
# Columns such that a block of them fits into a core's nearest cache.
_TILE = 64


@kernel
def _filter(past: Array, coefficients: Array, distance: int, out: Array) -> None:
    """Adds to ``out[j]`` the sum of coefficients[distance + j + k] past[-1 - k] over k, always in the same order.

    Args:
        past: float64 ``(releases, columns)``.
        coefficients: float64, long enough.
        distance: From the last of ``past`` to the first of ``out``, in releases.
        out: float64 ``(following, columns)``.
    """
    releases, columns = past.shape
    for start in range(0, columns, _TILE):
        stop = min(start + _TILE, columns)
        for k in range(releases):
            for j in range(len(out)):
                coefficient = coefficients[distance + j + k]
                for i in range(start, stop):
                    out[j, i] += coefficient * past[releases - 1 - k, i]
