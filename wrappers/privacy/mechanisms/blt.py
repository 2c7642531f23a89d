"""Buffered linear Toeplitz (BLT) noise: nearly the least, in constant memory and time."""

from functools import lru_cache
from math import expm1, log

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise


class BltNoise(PrefixNoise):
    """The noise of a release is made of its own draw and a few decaying sums of earlier noise.

    (Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and Near-Optimal Noise Generation for Streaming
    Differential Privacy", FOCS 2024.) An increment of the noise is a draw less the buffers, weighted; then each buffer
    is multiplied by its decay and the increment added to it. That divides by C without its coefficients being
    written down. Memory is one number a buffer, row and value.

    Example:
        >>> noise = BltNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        1.393
    """

    def __init__(self, releases: int) -> None:
        """Fits the factorisation to a number of releases of each row, >= 1."""
        super().__init__(releases)
        self._toeplitz = fitted(releases)
        self._column_squares = [
            self._toeplitz.column_square(min(1 << k, releases))
            for k in range((releases - 1).bit_length() + 1)
        ]

    def column_square(self, z: int) -> float:
        """Returns an upper bound: the norm for the next power of two of rows, or for all that are planned.

        The norm grows with every release, and composing an event anew each time takes longer than making the noise.
        """
        return self._column_squares[(z - 1).bit_length()]

    def variance(self, z: int) -> float:
        """Returns the squared norm of B's z-th row."""
        return self._toeplitz.row_square(z)

    def start(self, rows: int, values: int) -> None:
        """Starts with empty buffers."""
        self._buffers = np.zeros((rows, len(self._toeplitz.decays), values))

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Returns the rows' next noise, the draws less the weighted buffers; updates buffers, overwrites draws."""
        increment = draws[0]
        _divide(increment, self._buffers, rows, self._toeplitz.weights, self._toeplitz.decays)
        return increment


class BufferedToeplitz:
    """A factorisation B C of the prefix sums into lower-triangular Toeplitz matrices of rational generating functions.

    With p_i and q_i in (0, 1), that of C is the product of (1 - q_i x)/(1 - p_i x), over as many i as there are
    buffers. So its coefficients are 1 and then, for k >= 1, the sum of ``weights[i] decays[i]^(k - 1)``; the decays are
    the p_i. That of B, 1/(1 - x) divided by it, has sums of geometric sequences as well, of 1 and the q_i. Where
    p_1 > q_1 > p_2 > ... all weights are positive: no column of C is larger than the first, no row of B than the last.

    ("An Inversion Theorem for Buffered Linear Toeplitz (BLT) Matrices and Applications to Streaming Differential
    Privacy", arXiv 2504.21413, shows that the decays of B and C determine both.)

    Attributes:
        decays: float64 ``(buffers,)``.
        weights: float64 ``(buffers,)``.

    Example:
        >>> toeplitz = fitted(100)
        >>> toeplitz.decays.size, round(float(toeplitz.column_square(1)), 3)
        (3, 1.0)
    """

    def __init__(self, poles: Array, zeros: Array) -> None:
        """Takes -ln p_i and -ln q_i, float64 ``(buffers,)`` each, p_1 > q_1 > p_2 > ... > 0."""
        self.decays = np.exp(-poles)
        others = np.exp(-zeros)
        self.weights = _residues(self.decays, others)
        # Computed from the rounded decays, not ``poles``: norms then match the coefficients used for noise.
        self._rates = -np.log(self.decays)
        self._row_rates = np.concatenate(([0.0], zeros))
        self._row_weights = _residues(np.concatenate(([1.0], others)), self.decays)

    def column_square(self, z: int) -> float:
        """Returns the squared norm of the first column of C's first z rows; z >= 1."""
        return 1 + float(_squares(self.weights, self._rates, z - 1))

    def row_square(self, z: int) -> float:
        """Returns the squared norm of B's z-th row; z >= 0."""
        return float(_squares(self._row_weights, self._row_rates, z))


@lru_cache(maxsize=256)  # Every episode asks for the same one again.
def fitted(releases: int) -> BufferedToeplitz:
    """Returns the factorisation whose last prefix sum has least noise at equal privacy, for a number of releases.

    The -ln of p_1, q_1, p_2, ... are taken from a geometric sequence, shifted: a (r^j - s), of which three numbers are
    fitted. Fitted freely they come to lie nearly so, and gain 2e-5 at most. A buffer for every three doublings of the
    releases keeps the standard deviation within 1.0004 times the square root's.

    Args:
        releases: At least 1.
    """
    buffers = 1 + releases.bit_length() // 3

    def toeplitz(shape: Array) -> BufferedToeplitz:
        first, step, shift = shape
        rates = np.exp(first) * (np.exp(step * np.arange(2 * buffers)) - expit(shift))
        return BufferedToeplitz(rates[0::2], rates[1::2])

    def noise(shape: Array) -> float:
        tried = toeplitz(shape)
        return log(tried.column_square(releases)) + log(tried.row_square(releases))

    # Near where searches from 1e2 to 1e6 releases end, from wherever they start: a short one will do.
    each = log(releases) / buffers
    start = np.array([0.58 - log(releases), 0.55 + 0.255 * each, 1.18 - 0.55 * each])
    nearby = np.vstack((start, start + 0.05 * np.eye(3)))
    options = {"initial_simplex": nearby, "xatol": 1e-2, "fatol": 1e-7}
    found = minimize(noise, start, method="Nelder-Mead", options=options)
    # Rounded, so that nothing hangs on the last bits of a search; it is flat enough.
    return toeplitz(np.round(found.x, 2))


@kernel
def _divide(noise: Array, buffers: Array, rows: Array, weights: Array, decays: Array) -> None:
    """Turns draws into increments, in place, and moves buffers on.

    Args:
        noise: float64 ``(rows that release, values)``.
        buffers: float64 ``(all rows, buffers, values)``.
        rows: Which of all rows they are, int64.
        weights: float64 ``(buffers,)``.
        decays: float64 ``(buffers,)``.
    """
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(weights)):
            for k in range(noise.shape[1]):
                noise[i, k] -= weights[j] * buffers[row, j, k]
        for j in range(len(decays)):
            for k in range(noise.shape[1]):
                buffers[row, j, k] = decays[j] * buffers[row, j, k] + noise[i, k]


@kernel
def _residues(poles: Array, zeros: Array) -> Array:
    """Returns, for each pole, the product of its distances to zeros over that of its distances to other poles."""
    residues = np.ones(len(poles))
    for i in range(len(poles)):
        for zero in zeros:
            residues[i] *= poles[i] - zero
        for j in range(len(poles)):
            if j != i:
                residues[i] /= poles[i] - poles[j]
    return residues


@kernel
def _squares(weights: Array, rates: Array, terms: int) -> float:
    """Adds up the squares of the sum of weights[i] exp(-rates[i] t) over i, for t = 0 .. terms - 1."""
    total = 0.0
    for i in range(len(weights)):
        for j in range(len(weights)):
            rate = rates[i] + rates[j]
            times = expm1(-terms * rate) / expm1(-rate) if rate > 0 else float(terms)
            total += weights[i] * weights[j] * times
    return total
