"""What mechanisms on dyadic trees share."""

from abc import abstractmethod

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.wrappers.privacy.noise.prefix_noise import PrefixNoise


class DyadicNoise(PrefixNoise):
    """Noise of a binary counter: the z-th prefix sum is that of the nodes at the set bits of z.

    The node of level l at a bit covers 2^l windows; its noise is drawn when its last window is released. A level's
    noise is kept until its bit is set again, so memory and amortised time a release grow with log2 of the releases
    alone.

    A window lies in one node of each level at most, and the first lies in all that there are.
    """

    @abstractmethod
    def node_variance(self, level: int) -> float:
        """Returns the variance of the noise that stands for a node in a prefix sum."""

    @abstractmethod
    def _complete(self, rows: Array, level: int, draws: Array) -> Array:
        """Makes the noise of the nodes at ``level`` that rows complete; ``_nodes`` holds those of the bits below."""

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
        level = _level(z)
        node = self._complete(rows, level, draws)
        increment = node - self._nodes[:level, rows].sum(axis=0)
        self._nodes[level, rows] = node
        return increment


def _level(z: int) -> int:
    """Returns the level of the node that the z-th release completes: how often 2 divides z."""
    return (z & -z).bit_length() - 1
