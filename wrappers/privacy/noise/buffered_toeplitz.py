"""Toeplitz matrices of a few geometric sequences, fitted to the square root of the prefix sums."""

from functools import lru_cache
from math import expm1, log

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel


class BufferedToeplitz:
    """A factorisation B C of the prefix sums into lower-triangular Toeplitz matrices of rational generating functions.

    With p_i and q_i in (0, 1), that of C is the product of (1 - q_i x)/(1 - p_i x), over as many i as there are
    buffers. So its coefficients are 1 and then, for k >= 1, the sum of ``weights[i] decays[i]^(k - 1)``; the decays are
    the p_i. That of B, 1/(1 - x) divided by it, has sums of geometric sequences as well, of 1 and the q_i. Where
    p_1 > q_1 > p_2 > ... all weights are positive: no column of C is larger than the first, no row of B than the last.

    ("An Inversion Theorem for Buffered Linear Toeplitz (BLT) Matrices and Applications to Streaming Differential
    Privacy", arXiv 2504.21413, shows that the decays of both say all.)

    Attributes:
        decays: float64 ``(buffers,)``.
        weights: float64 ``(buffers,)``.
    """

    def __init__(self, poles: Array, zeros: Array) -> None:
        """Takes -ln p_i and -ln q_i, float64 ``(buffers,)`` each, p_1 > q_1 > p_2 > ... > 0."""
        self.decays = np.exp(-poles)
        others = np.exp(-zeros)
        self.weights = _residues(self.decays, others)
        # Of the decays as they are, so that norms are those of the coefficients that noise is made with.
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
    """Returns the factorisation whose last prefix sum has least noise at equal privacy, for so many releases.

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
