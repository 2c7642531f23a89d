"""Buffered linear Toeplitz (BLT) noise of prefix sums: nearly the least noise possible, in constant memory and time."""

from functools import lru_cache
from math import expm1, log

import numpy as np
import scipy  # imports its large parts, such as stats, only when they are used
from scipy.special import expit

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, kernel
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise


class BltNoise(PrefixNoise):
    """Buffered linear Toeplitz noise: the noise of a release is a new draw minus a few decaying sums of earlier noise.

    The method is from Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and Near-Optimal Noise Generation
    for Streaming Differential Privacy", FOCS 2024. The decaying sums are called buffers. The noise of a release is a
    random draw minus the weighted sum of the buffers; then each buffer is multiplied by its decay and this noise is
    added to it. These steps multiply the draws by the inverse of C without computing its coefficients. Memory is one
    number for each buffer, row and released number.

    Example:
        >>> noise = BltNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        1.393
    """

    def __init__(self, releases: int) -> None:
        """Fits the factorisation to the largest number of releases of a row, >= 1."""
        super().__init__(releases)
        self._toeplitz = fitted(releases)
        self._column_squares = [
            self._toeplitz.column_square(min(1 << k, releases))
            for k in range((releases - 1).bit_length() + 1)
        ]

    def column_square(self, z: int) -> float:
        """Returns an upper bound on the squared norm of C's first column for z releases.

        It is the squared norm for z rounded up to a power of two, or for all planned releases. The exact norm grows
        with every release, and composing the privacy of a new event at each release takes longer than making the noise.
        """
        return self._column_squares[(z - 1).bit_length()]

    def sum_square(self, z: int) -> float:
        """Returns the sum over C's first z rows of the square of the sum of the row."""
        return self._toeplitz.sum_square(z)

    def variance(self, z: int) -> float:
        """Returns the variance of the noise in the z-th prefix sum: the squared norm of B's z-th row."""
        return self._toeplitz.row_square(z)

    def start(self, rows: int, values: int) -> None:
        """Starts an episode: all buffers, the decaying sums of earlier noise, are 0."""
        self._buffers = np.zeros((rows, len(self._toeplitz.decays), values))

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Returns the noise to add to the next release of some rows: the draws minus the weighted sum of the buffers.

        The array ``draws`` is overwritten.
        """
        increment = draws[0]
        _divide(increment, self._buffers, rows, self._toeplitz.weights, self._toeplitz.decays)
        return increment


class BufferedToeplitz:
    """A factorisation of the matrix of prefix sums into B C, Toeplitz matrices with rational generating functions.

    Both matrices are lower triangular. The generating function of C is the product of (1 - q_i x)/(1 - p_i x) over the
    buffers i, with p_i and q_i in (0, 1). So the coefficients of C are 1 and then, for k >= 1, the sum over i of
    ``weights[i] decays[i]^(k - 1)``, where the decays are the p_i. The generating function of B is 1/(1 - x) divided by
    that of C, so the coefficients of B are sums of geometric sequences as well, with the factors 1 and q_i. If
    p_1 > q_1 > p_2 > ..., all weights are positive: then the first column of C and the last row of B have the largest
    norms.

    "An Inversion Theorem for Buffered Linear Toeplitz (BLT) Matrices and Applications to Streaming Differential
    Privacy", arXiv 2504.21413, shows that the decays of B and C determine both matrices.

    Attributes:
        decays: The factor of each buffer from one release to the next, p_i, float64 ``(buffers,)``.
        weights: The weight with which each buffer is subtracted from a draw, float64 ``(buffers,)``.

    Example:
        >>> toeplitz = fitted(100)
        >>> toeplitz.decays.size, round(float(toeplitz.column_square(1)), 3)
        (3, 1.0)
    """

    def __init__(self, poles: Array, zeros: Array) -> None:
        """Computes decays and weights from the poles and zeros of C's generating function.

        Args:
            poles: -ln p_i, float64 ``(buffers,)``.
            zeros: -ln q_i, float64 ``(buffers,)``, with p_1 > q_1 > p_2 > ... > 0.
        """
        self.decays = np.exp(-poles)
        others = np.exp(-zeros)
        self.weights = _residues(self.decays, others)
        # The norms are computed from the decays, which exp has rounded, and not from `poles`, so that they belong to
        # exactly the coefficients with which noise is made.
        self._rates = -np.log(self.decays)
        self._row_rates = np.concatenate(([0.0], zeros))
        self._row_weights = _residues(np.concatenate(([1.0], others)), self.decays)

    def column_square(self, z: int) -> float:
        """Returns the squared norm of the first column of C's first z rows; z >= 1."""
        return 1 + float(_squares(self.weights, self._rates, z - 1))

    def sum_square(self, z: int) -> float:
        """Returns the sum over C's first z rows of the square of the sum of the row; z >= 1.

        Negative weights, which a fit does not give, count by their size, so that the result is then an upper bound on
        the sum of |C^T C|.
        """
        # The sum of the row with t + 1 coefficients is 1 plus the sum of weight (1 - decay^t)/(1 - decay).
        limits = np.abs(self.weights) / -np.expm1(-self._rates)
        rates = np.concatenate(([0.0], self._rates))
        return float(_squares(np.concatenate(([1 + limits.sum()], -limits)), rates, z))

    def row_square(self, z: int) -> float:
        """Returns the squared norm of B's z-th row; z >= 0."""
        return float(_squares(self._row_weights, self._row_rates, z))


@lru_cache(maxsize=256)  # Each episode needs the same factorisation again.
def fitted(releases: int) -> BufferedToeplitz:
    """Returns the factorisation that minimises the noise in the last prefix sum at a given privacy.

    The numbers -ln p_1, -ln q_1, -ln p_2, ... are set to a shifted geometric sequence a (r^j - s), whose three
    parameters a, r and s are fitted. Fitting all numbers freely gives nearly such a sequence and reduces the noise by
    2e-5 of it at most. With one buffer for every three doublings of the number of releases, the standard deviation is
    at most 1.0004 times that of the square-root factorisation.

    Args:
        releases: The number of releases, at least 1.
    """
    buffers = 1 + releases.bit_length() // 3

    def toeplitz(shape: Array) -> BufferedToeplitz:
        first, step, shift = shape
        rates = np.exp(first) * (np.exp(step * np.arange(2 * buffers)) - expit(shift))
        return BufferedToeplitz(rates[0::2], rates[1::2])

    def noise(shape: Array) -> float:
        tried = toeplitz(shape)
        return log(tried.column_square(releases)) + log(tried.row_square(releases))

    # The start is close to the optimum for 1e2 to 1e6 releases (searches from various starting points end near it), so
    # that a short search suffices.
    each = log(releases) / buffers
    start = np.array([0.58 - log(releases), 0.55 + 0.255 * each, 1.18 - 0.55 * each])
    nearby = np.vstack((start, start + 0.05 * np.eye(3)))
    options = {"initial_simplex": nearby, "xatol": 1e-2, "fatol": 1e-7}
    found = scipy.optimize.minimize(noise, start, method="Nelder-Mead", options=options)
    # Rounded, so that the result does not depend on the last bits of the search. The optimum is flat: rounding adds
    # hardly any noise.
    return toeplitz(np.round(found.x, 2))


@kernel
def _divide(noise: Array, buffers: Array, rows: Array, weights: Array, decays: Array) -> None:
    """Turns random draws into the noise of the next release, in place, and updates the buffers.

    Args:
        noise: Input: draws; output: noise, float64 ``(rows that release, values)``.
        buffers: Decaying sums of earlier noise, updated, float64 ``(all rows, buffers, values)``.
        rows: Indices of the rows that release among all rows, int64.
        weights: The weight of each buffer, float64 ``(buffers,)``.
        decays: The decay of each buffer, float64 ``(buffers,)``.
    """
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(weights)):
            for k in range(noise.shape[1]):
                noise[i, k] -= weights[j] * buffers[row, j, k]
        for j in range(len(decays)):
            for k in range(noise.shape[1]):
                buffers[row, j, k] = decays[j] * buffers[row, j, k] + noise[i, k]


@allocating_kernel
def _residues(poles: Array, zeros: Array) -> Array:
    """Returns for each pole the product of its differences to all zeros, divided by that to all other poles.

    Args:
        poles: Numbers p_i, float64 ``(poles,)``.
        zeros: Numbers q_j, float64 ``(zeros,)``.

    Returns:
        The product of p_i - q_j over j, divided by the product of p_i - p_k over k != i, float64 ``(poles,)``.
    """
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
    """Returns the sum over t = 0 .. terms - 1 of the square of (sum over i of weights[i] exp(-rates[i] t))."""
    total = 0.0
    for i in range(len(weights)):
        for j in range(len(weights)):
            rate = rates[i] + rates[j]
            times = expm1(-terms * rate) / expm1(-rate) if rate > 0 else float(terms)
            total += weights[i] * weights[j] * times
    return total
