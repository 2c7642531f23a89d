"""The tree mechanism, with the nodes that prefixes are made of and no others."""

from fedbandit_envs.arrays import Array
from fedbandit_envs.wrappers.privacy.noise.dyadic import DyadicNoise


class TreeNoise(DyadicNoise):
    """The binary counter of Chan, Shi and Song (ACM TISSEC 2011): one draw a node, and one node a release.

    The z-th prefix sum has as many draws as z has set bits, and the z-th release completes one of their nodes.
    """

    def node_variance(self, level: int) -> float:
        """Returns 1."""
        return 1.0

    def _complete(self, rows: Array, level: int, draws: Array) -> Array:
        return draws[0]
