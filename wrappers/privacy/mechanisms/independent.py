"""Independent noise in every release, as the simplest noise of prefix sums."""

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise


class IndependentNoise(PrefixNoise):
    """Independent noise in every release: C is the identity, and B the matrix of prefix sums.

    The noise of a prefix sum grows with every release, so that this is a bad choice if one window changes. If all
    windows change (the adjacency ``agent``) it is better than the correlated noise of the other mechanisms.

    Example:
        >>> noise = IndependentNoise(8)
        >>> noise.variance(3), noise.column_square(3), noise.sum_square(3)
        (3.0, 1.0, 3.0)
    """

    def column_square(self, z: int) -> float:
        """Returns the squared norm of a column of the identity: 1."""
        return 1.0

    def sum_square(self, z: int) -> float:
        """Returns the squared norm of a vector of z ones: z."""
        return float(z)

    def variance(self, z: int) -> float:
        """Returns the variance of the sum of z draws: z."""
        return float(z)

    def start(self, rows: int, values: int) -> None:
        """Starts an episode; nothing is kept."""

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Returns the draws of the z-th release."""
        return draws[0]
