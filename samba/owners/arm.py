"""The arm of a data owner."""

import numpy as np


class OwnerArm:
    """A Bernoulli arm whose j-th reward depends on its owner's key and j alone.

    So the rewards depend neither on which other owners are picked nor on the machine.

    Example:
        >>> arm = OwnerArm(mean=1.0, key=bytes(32))
        >>> [arm.pull() for _ in range(3)]
        [1, 1, 1]
    """

    _BLOCK = 256

    def __init__(self, mean: float, key: bytes) -> None:
        """Sets the arm up.

        Args:
            mean: Probability that a reward is 1; else it is 0.
            key: The key of the owner's rewards, see :class:`~fedbandit_envs.samba.crypto.keystreams.OwnerKeys`.

        Raises:
            ValueError: The mean is no probability.
        """
        if not 0.0 <= mean <= 1.0:
            raise ValueError(f"mean is {mean!r}; a number in [0, 1] is required")
        self._mean = float(mean)
        self._generator = np.random.Generator(
            np.random.SFC64(np.random.SeedSequence(int.from_bytes(key, "little")))
        )
        self._ahead: list[bool] = []

    def pull(self) -> int:
        """Returns the next reward, 0 or 1."""
        if not self._ahead:
            self._ahead = (self._generator.random(self._BLOCK) < self._mean)[::-1].tolist()
        return int(self._ahead.pop())
