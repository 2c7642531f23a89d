"""The tree mechanism with Honaker's estimates from below."""

from fedbandit_envs.arrays import Array
from fedbandit_envs.wrappers.privacy.noise.dyadic import DyadicNoise


class HonakerNoise(DyadicNoise):
    """Every node of the tree gets a draw, and is estimated from it and from its children's estimates.

    The two are independent; weighted by inverse variances they make one of variance 2^l/(2^(l+1) - 1) at level l, which
    falls from 1 to 1/2 (Honaker 2015, "Efficient Use of Differentially Private Binary Trees", the estimate from
    below, which needs no later data). Estimates are functions of the tree's noisy sums, so the tree's privacy is
    theirs. They do not tell all that the noisy sums do: attacks on the releases stay a little below the claim.
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
