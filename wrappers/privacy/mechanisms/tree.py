"""The tree mechanism for prefix sums, with plain nodes and with Honaker's more exact estimates of the nodes."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise


class TreeNoise(PrefixNoise):
    """The tree mechanism (Chan, Shi and Song, ACM TISSEC 2011): noise belongs to the nodes of a binary tree over time.

    A window is the time between two releases of an agent. A node of level l covers 2^l successive windows, and its
    noise is drawn when the last of them is released: one node for each release. The prefix sum over the first z windows
    is the sum of one node for each set bit of the binary number z, and its noise is the sum of their noises. The noise
    of a level is kept until its bit is set again, so memory and mean time for a release grow with the logarithm of the
    number of releases.

    A window lies in at most one node of each level; the first window lies in a node of every level.

    Example:
        >>> noise = TreeNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        2.0
    """

    def node_variance(self, level: int) -> float:
        """Returns the variance of the noise of a node at this level, for draws of variance 1: here 1."""
        return 1.0

    def _complete(self, rows: Array, level: int, draws: Array) -> Array:
        """Returns the noise of the new nodes at ``level``, ``(rows, values)``.

        ``_nodes`` holds the noise of the nodes at lower levels, which the new nodes cover.
        """
        return draws[0]

    def column_square(self, z: int) -> float:
        """Returns the number of nodes in which the first of z windows lies: floor(log2 z) + 1, the number of levels."""
        return float(z.bit_length())

    def sum_square(self, z: int) -> float:
        """Returns the sum of the squared lengths of the nodes drawn in the first z releases."""
        return float(sum(((z >> level) - (z >> level + 1)) << 2 * level for level in range(z.bit_length())))

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

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Returns the noise to add to the z-th release: the new node's noise minus that of the nodes it covers."""
        # The z-th release completes the node at this level: the number of times that 2 divides z.
        level = (z & -z).bit_length() - 1
        node = self._complete(rows, level, draws)
        increment = node - self._nodes[:level, rows].sum(axis=0)
        self._nodes[level, rows] = node
        return increment


class HonakerNoise(TreeNoise):
    """The tree mechanism with Honaker's estimates: each node's noisy sum is averaged with its children's estimates.

    The node's own noisy sum and the sum of its children's estimates are independent. Their average, weighted by inverse
    variances, has the variance 2^l/(2^(l+1) - 1) at level l, which falls from 1 to 1/2 (Honaker 2015, "Efficient Use of
    Differentially Private Binary Trees", the estimate from below, which needs no later data). The estimates are
    functions of the tree's noisy sums, so that they are at least as private. They contain less information than the
    noisy sums: attacks on the releases therefore prove an epsilon a little below the claim.

    Example:
        >>> noise = HonakerNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        1.667
    """

    def node_variance(self, level: int) -> float:
        """Returns the variance of the estimate of a node at level l, for draws of variance 1: 2^l/(2^(l+1) - 1)."""
        return 2**level / (2 ** (level + 1) - 1)

    def sum_square(self, z: int) -> float:
        """Returns the sum of the squared lengths of all nodes that end with one of the first z windows.

        The estimates tell as much as all nodes about an equal change of all windows, for which nodes agree.
        """
        return float(sum((z >> level) << 2 * level for level in range(z.bit_length())))

    def draws(self, z: int) -> int:
        """Returns how many nodes end with the z-th window: one at each level up to that of the largest of them."""
        return (z & -z).bit_length()

    def _complete(self, rows: Array, level: int, draws: Array) -> Array:
        node = draws[0]
        for above in range(1, level + 1):
            # The left child is kept one level below; the right child is the node of the iteration before.
            children = self._nodes[above - 1, rows] + node
            # Each child has the variance v, so their sum has 2 v; the node's own noisy sum has the variance 1.
            double = 2 * self.node_variance(above - 1)
            node = (double * draws[above] + children) / (double + 1)
        return node
