"""Buffered linear Toeplitz noise: nearly the least, in constant memory and time."""

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel
from fedbandit_envs.wrappers.privacy.noise.buffered_toeplitz import fitted
from fedbandit_envs.wrappers.privacy.noise.prefix_noise import PrefixNoise


class BltNoise(PrefixNoise):
    """Noise that each release's own draw and a few decaying sums of earlier noise are put together to.

    (Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and Near-Optimal Noise Generation for Streaming
    Differential Privacy", FOCS 2024.) An increment of the noise is a draw less the buffers, weighted; then each buffer
    is multiplied by its decay and the increment added to it. That divides by C without its coefficients being
    written down. Memory is one number a buffer, row and value.
    """

    def __init__(self, releases: int) -> None:
        """Plans for so many releases a row, >= 1, and fits the noise to them."""
        super().__init__(releases)
        self._toeplitz = fitted(releases)
        self._column_squares = [
            self._toeplitz.column_square(min(1 << k, releases))
            for k in range((releases - 1).bit_length() + 1)
        ]

    def column_square(self, z: int) -> float:
        """Returns that of as many rows as the next power of two says, or of all that are planned.

        It grows with every release, and to say each time what that means takes longer than to make the noise.
        """
        return self._column_squares[(z - 1).bit_length()]

    def variance(self, z: int) -> float:
        """Returns the squared norm of B's z-th row."""
        return self._toeplitz.row_square(z)

    def start(self, rows: int, values: int) -> None:
        """Starts with empty buffers."""
        self._buffers = np.zeros((rows, len(self._toeplitz.decays), values))

    def advance(self, rows: Array, z: int, draws: Array) -> Array:
        """Takes the buffers off the draws, and puts the result into the buffers."""
        increment = draws[0]
        _divide(increment, self._buffers, rows, self._toeplitz.weights, self._toeplitz.decays)
        return increment


@kernel
def _divide(noise: Array, buffers: Array, rows: Array, weights: Array, decays: Array) -> None:
    """Turns draws into increments, in place, and moves buffers on.

    Args:
        noise: float64 ``(rows that release, values)``.
        buffers: float64 ``(all rows, buffers, values)``.
        rows: Which of all rows they are, int64.
        weights: float64 ``(buffers,)``.
        decays: float64 ``(buffers,)``.
    """
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(weights)):
            for k in range(noise.shape[1]):
                noise[i, k] -= weights[j] * buffers[row, j, k]
        for j in range(len(decays)):
            for k in range(noise.shape[1]):
                buffers[row, j, k] = decays[j] * buffers[row, j, k] + noise[i, k]
