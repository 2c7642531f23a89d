"""The tree mechanism, with plain nodes and with Honaker's estimates of them."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise


class TreeNoise(PrefixNoise):
    """The binary counter of Chan, Shi and Song (ACM TISSEC 2011): noise of the nodes of a binary tree over the windows.

    The noise of the z-th prefix sum is that of the nodes at the set bits of z. The node of level l at a bit covers 2^l
    windows; its noise is drawn when its last window is released, one node a release. A level's noise is kept until its
    bit is set again, so memory and amortised time a release grow with log2 of the releases alone.

    A window lies in one node of each level at most, and the first lies in all that there are.

    Example:
        >>> noise = TreeNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        2.0
    """

    def node_variance(self, level: int) -> float:
        """Returns the variance of the noise that stands for a node in a prefix sum: 1."""
        return 1.0

    def _complete(self, rows: Array, level: int, draws: Array) -> Array:
        """Returns the noise of the nodes at ``level`` that rows complete; ``_nodes`` holds those of the bits below."""
        return draws[0]

    def column_square(self, z: int) -> float:
        """Returns the number of levels, floor(log2 z) + 1."""
        return float(z.bit_length())

    def variance(self, z: int) -> float:
        """Returns the variances of the nodes at the set bits of z, added up."""
        return sum(self.node_variance(level) for level in range(z.bit_length()) if z >> level & 1)

    @property
    def worst_variance(self) -> float:
        """The largest variance: that of all releases, or of the most with one bit less and all bits below it."""
        n = self.releases
        rivals = ((n >> level << level) - 1 for level in range(n.bit_length()) if n >> level & 1)
        return max(map(self.variance, (n, *rivals)))

    def start(self, rows: int, values: int) -> None:
        """Starts with no node completed."""
        self._nodes = np.zeros((self.releases.bit_length(), rows, values))

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Puts the node that the z-th release completes in the place of those that it covers."""
        # The level of the node that is completed: how often 2 divides z.
        level = (z & -z).bit_length() - 1
        node = self._complete(rows, level, draws)
        increment = node - self._nodes[:level, rows].sum(axis=0)
        self._nodes[level, rows] = node
        return increment


class HonakerNoise(TreeNoise):
    """The tree mechanism with Honaker's estimate of every node, from its own draw and its children's estimates.

    These two are independent; weighted by inverse variances they make one of variance 2^l/(2^(l+1) - 1) at level l; it
    falls from 1 to 1/2 (Honaker 2015, "Efficient Use of Differentially Private Binary Trees", the estimate from
    below, which needs no later data). Estimates are functions of the tree's noisy sums, so the tree's privacy is
    theirs. The estimates contain less information than the noisy sums: attacks on the releases stay a little below the
    claim.

    Example:
        >>> noise = HonakerNoise(8)
        >>> round(float(noise.variance(3)), 3)  # of the noise in the third prefix sum, for draws of variance 1
        1.667
    """

    def node_variance(self, level: int) -> float:
        """Returns 2^l/(2^(l+1) - 1)."""
        return 2**level / (2 ** (level + 1) - 1)

    def draws(self, z: int) -> int:
        """Returns how many nodes the z-th release completes, one a level up to that of the largest."""
        return (z & -z).bit_length()

    def _complete(self, rows: Array, level: int, draws: Array) -> Array:
        node = draws[0]
        for above in range(1, level + 1):
            # The left child is at the bit below; the right one has just been completed.
            children = self._nodes[above - 1, rows] + node
            # The children's sum has the variance 2 v, v that of each; the node's own noisy sum has 1.
            double = 2 * self.node_variance(above - 1)
            node = (double * draws[above] + children) / (double + 1)
        return node
