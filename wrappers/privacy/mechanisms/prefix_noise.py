"""Noise of prefix sums, made of independent draws: what all matrix mechanisms have in common, and each of them.

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

from collections.abc import Iterable
from functools import lru_cache
from math import expm1, log

import numpy as np
import scipy  # imports its large parts, such as stats, only when they are used
from scipy.special import expit

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, kernel


class PrefixNoise:
    """The noise of prefix sums, for many rows (agents of replicas) and a planned number of releases of each.

    Rows have independent noise and may have different numbers of releases so far. Variances are in units of the
    variance of one draw.

    This base class draws fresh noise for each release: C is the identity, and B the matrix of prefix sums. So the
    variance of a prefix sum's noise grows by one with each release. That is much if neighbours differ in one window
    (the data between two releases). If they differ in all windows (the adjacency ``agent``), it is less than the
    correlated noise of the subclasses needs.

    Example:
        >>> noise = PrefixNoise(8)
        >>> noise.variance(3), noise.column_square(3), noise.sum_square(3)
        (3.0, 1.0, 3.0)
    """

    def __init__(self, releases: int) -> None:
        """Takes the largest number of releases of a row, >= 1."""
        self.releases = releases

    def column_square(self, z: int) -> float:
        """Returns the largest squared norm of a column of C's first z rows, or an upper bound on it.

        It determines the privacy loss of the first z releases; 1 <= z <= ``releases``.
        """
        return 1.0

    def sum_square(self, z: int) -> float:
        """Returns the squared norm of C 1 for C's first z rows, or, as needed, a bound on it; 1 <= z <= ``releases``.

        It determines the privacy loss of the first z releases if all data of an agent change: it is the largest squared
        norm of the change of C x if each window changes by a vector of norm 1.
        """
        return float(z)

    def variance(self, z: int) -> float:
        """Returns the variance of the noise in the sum of an agent's first z releases; 0 <= z <= ``releases``."""
        return float(z)

    @property
    def worst_variance(self) -> float:
        """The largest variance of the noise in any of the planned prefix sums: by default in the last one."""
        return self.variance(self.releases)

    def draws(self, z: int) -> int:
        """Returns how many standard normal draws each number in the z-th release takes: 1 unless overridden."""
        return 1

    def start(self, rows: int, values: int) -> None:
        """Starts an episode in which no row has released yet.

        Args:
            rows: Number of rows (agents of replicas).
            values: Number of independent noises that a row needs for one release.
        """

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
        return draws[0]


class TreeNoise(PrefixNoise):
    """The tree mechanism (Chan, Shi and Song, ACM TISSEC 2011): noise belongs to the nodes of a binary tree over time.

    A window is the time between two releases of an agent. A node of level l covers 2^l successive windows, and its
    noise is drawn when the last of them is released. The prefix sum over the first z windows
    is the sum of one node for each set bit of the binary number z, and its noise is the sum of their noises. The noise
    of a level is kept until its bit is set again, so memory and mean time for a release grow with the logarithm of the
    number of releases.

    A window lies in at most one node of each level; the first window lies in a node of every level.

    With Honaker's ``estimates`` (2015, "Efficient Use of Differentially Private Binary Trees", the estimate from below,
    which needs no later data) each node's noisy sum is averaged with the sum of its children's estimates, weighted by
    inverse variances. The estimates follow from the tree's noisy sums, so they are at least as private. They tell less
    than these sums do, so attacks on the releases prove an epsilon a little below the claim.

    Example:
        >>> noise = TreeNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        2.0
        >>> round(float(TreeNoise(8, estimates=True).variance(3)), 3)
        1.667
    """

    def __init__(self, releases: int, estimates: bool = False) -> None:
        """Takes the largest number of releases of a row, >= 1, and whether nodes are estimated."""
        super().__init__(releases)
        self._estimates = estimates

    def node_variance(self, level: int) -> float:
        """Returns the variance of the noise of a node at this level, which estimates let fall from 1 to 1/2."""
        return 2**level / (2 ** (level + 1) - 1) if self._estimates else 1.0

    def column_square(self, z: int) -> float:
        """Returns the number of nodes in which the first of z windows lies: floor(log2 z) + 1, the number of levels."""
        return float(z.bit_length())

    def sum_square(self, z: int) -> float:
        """Returns the sum of the squared lengths of the nodes drawn in the first z releases.

        Estimates tell as much as all nodes that end with one of the first z windows about an equal change of all
        windows, for which nodes agree.
        """
        unread = 0 if self._estimates else 1
        return float(
            sum(((z >> level) - unread * (z >> level + 1)) << 2 * level for level in range(z.bit_length()))
        )

    def variance(self, z: int) -> float:
        """Returns the variance of the noise in the z-th prefix sum: the sum over the nodes at the set bits of z."""
        return sum(self.node_variance(level) for level in range(z.bit_length()) if z >> level & 1)

    @property
    def worst_variance(self) -> float:
        """The largest variance of any planned prefix sum.

        The largest number of nodes at each level is reached by the planned number n of releases, or by a smaller number
        in which one set bit of n is cleared and all lower bits are set; the maximum over these is returned.
        """
        n = self.releases
        rivals = ((n >> level << level) - 1 for level in range(n.bit_length()) if n >> level & 1)
        return max(map(self.variance, (n, *rivals)))

    def start(self, rows: int, values: int) -> None:
        """Starts an episode in which no node has noise yet."""
        self._nodes = np.zeros((self.releases.bit_length(), rows, values))

    def draws(self, z: int) -> int:
        """Returns 1, or for estimates how many nodes end with the z-th window: one at each level up to the largest."""
        return (z & -z).bit_length() if self._estimates else 1

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Returns the noise to add to the z-th release: the new node's noise minus that of the nodes it covers."""
        # The z-th release completes the node at this level: the number of times that 2 divides z.
        level = (z & -z).bit_length() - 1
        node = draws[0]
        for above in range(1, len(draws)):
            # The left child is kept one level below; the right child is the node of the iteration before.
            children = self._nodes[above - 1, rows] + node
            # Each child has the variance v, so their sum has 2 v; the node's own noisy sum has the variance 1.
            double = 2 * self.node_variance(above - 1)
            node = (double * draws[above] + children) / (double + 1)
        increment = node - self._nodes[:level, rows].sum(axis=0)
        self._nodes[level, rows] = node
        return increment


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
            # What the draws so far contribute to the noise of each release of this block.
            if not len(self._ahead):
                self._ahead = np.zeros((_BLOCK, all_rows, values))
            past = self._draws[: z - 1, which]
            # The last block may be shorter, since no more releases than planned take place.
            ahead = np.zeros((min(_BLOCK, self.releases - z + 1), *past.shape[1:]))
            _filter(past.reshape(z - 1, -1), self._differences, 1, ahead.reshape(len(ahead), -1))
            self._ahead[: len(ahead), which] = ahead
        increment = self._ahead[place, rows] if block else np.zeros((len(rows), values))
        recent = self._draws[block * _BLOCK : z, which].reshape(place + 1, -1)
        _filter(recent, self._differences, 0, increment.reshape(1, -1))
        return increment


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


class BltNoise(PrefixNoise):
    """Buffered linear Toeplitz noise: the noise of a release is a new draw minus a few decaying sums of earlier noise.

    The method is from Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and Near-Optimal Noise Generation
    for Streaming Differential Privacy", FOCS 2024. The decaying sums are called buffers. The noise of a release is a
    random draw minus the weighted sum of the buffers; then each buffer is multiplied by its decay and this noise is
    added to it. These steps multiply the draws by the inverse of C without computing its coefficients. Memory is one
    number for each buffer, row and released number.

    B and C are lower-triangular Toeplitz matrices. The generating function of C is the product of
    (1 - q_i x)/(1 - p_i x) over the buffers i, with p_i and q_i in (0, 1). So the coefficients of C are 1 and then, for
    k >= 1, the sum over i of ``weights[i] decays[i]^(k - 1)``, where the decays are the p_i. The generating function of
    B is 1/(1 - x) divided by that of C, so the coefficients of B are sums of geometric sequences as well, with the
    factors 1 and q_i. If p_1 > q_1 > p_2 > ..., all weights are positive: then the first column of C and the last row
    of B have the largest norms ("An Inversion Theorem for Buffered Linear Toeplitz (BLT) Matrices and Applications to
    Streaming Differential Privacy", arXiv 2504.21413).

    Example:
        >>> noise = BltNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        1.393
    """

    def __init__(self, releases: int, shape: Iterable[float] | None = None) -> None:
        """Takes the largest number of releases of a row, >= 1.

        The numbers -ln p_1, -ln q_1, -ln p_2, ... are a shifted geometric sequence a (r^j - s) of three parameters, of
        which ``shape`` has ln a, ln r and the logit of s; None fits them. With one buffer for every three doublings of
        the number of releases, the standard deviation is at most 1.0004 times that of the square-root factorisation.
        Fitting all numbers freely would reduce it by 2e-5 of it at most.
        """
        super().__init__(releases)
        first, step, shift = _fitted(releases) if shape is None else shape
        rates = np.exp(first) * (np.exp(step * np.arange(2 * _buffers(releases))) - expit(shift))
        zeros = rates[1::2]
        self._decays, others = np.exp(-rates[0::2]), np.exp(-zeros)
        self._weights = _residues(self._decays, others)
        # The norms are computed from the decays, which exp has rounded, so that they belong to exactly the coefficients
        # with which noise is made.
        self._rates = -np.log(self._decays)
        ahead = [min(1 << k, releases) for k in range((releases - 1).bit_length() + 1)]
        self._column_squares = [1 + float(_squares(self._weights, self._rates, n - 1)) for n in ahead]
        self._row_rates = np.concatenate(([0.0], zeros))
        self._row_weights = _residues(np.concatenate(([1.0], others)), self._decays)

    def column_square(self, z: int) -> float:
        """Returns an upper bound on the squared norm of C's first column for z releases.

        It is the squared norm for z rounded up to a power of two, or for all planned releases. The exact norm grows
        with every release, and composing the privacy of a new event at each release takes longer than making the noise.
        """
        return self._column_squares[(z - 1).bit_length()]

    def sum_square(self, z: int) -> float:
        """Returns the sum over C's first z rows of the square of the sum of the row.

        Negative weights, which a fit does not give, count by their size, so that the result is then an upper bound on
        the sum of |C^T C|.
        """
        # The sum of the row with t + 1 coefficients is 1 plus the sum of weight (1 - decay^t)/(1 - decay).
        limits = np.abs(self._weights) / -np.expm1(-self._rates)
        rates = np.concatenate(([0.0], self._rates))
        return float(_squares(np.concatenate(([1 + limits.sum()], -limits)), rates, z))

    def variance(self, z: int) -> float:
        """Returns the variance of the noise in the z-th prefix sum: the squared norm of B's z-th row."""
        return float(_squares(self._row_weights, self._row_rates, z))

    def start(self, rows: int, values: int) -> None:
        """Starts an episode: all buffers, the decaying sums of earlier noise, are 0."""
        self._sums = np.zeros((rows, len(self._decays), values))

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Returns the noise to add to the next release of some rows: the draws minus the weighted sum of the buffers.

        The array ``draws`` is overwritten.
        """
        _divide(draws[0], self._sums, rows, self._weights, self._decays)
        return draws[0]


def _buffers(releases: int) -> int:
    return 1 + releases.bit_length() // 3


@lru_cache(maxsize=256)  # Each episode needs the same factorisation again.
def _fitted(releases: int) -> tuple[float, ...]:
    """Returns the shape of the factorisation that has the least noise in the last prefix sum at a given privacy."""

    def noise(shape: Array) -> float:
        tried = BltNoise(releases, shape)
        return log(tried.column_square(releases)) + log(tried.variance(releases))

    # The start is close to the optimum for 1e2 to 1e6 releases (searches from various starting points end near it), so
    # that a short search suffices.
    each = log(releases) / _buffers(releases)
    start = np.array([0.58 - log(releases), 0.55 + 0.255 * each, 1.18 - 0.55 * each])
    nearby = np.vstack((start, start + 0.05 * np.eye(3)))
    options = {"initial_simplex": nearby, "xatol": 1e-2, "fatol": 1e-7}
    found = scipy.optimize.minimize(noise, start, method="Nelder-Mead", options=options)
    # Rounded, so that the result does not depend on the last bits of the search. The optimum is flat: rounding adds
    # hardly any noise.
    return tuple(np.round(found.x, 2).tolist())


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
