"""Random numbers of each row (agent of a replica) in a round, as a function of the row's key and of the round only."""

from math import prod
from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.randomness.threefry import padded_size
from fedbandit_envs.randomness.variates import fill_normals, fill_uniforms

MOST_ROUNDS = 2**32 - 1
"""The largest number of rounds: the round is a 32-bit word of the generator's counter, so more rounds would repeat."""


class Draws(NamedTuple):
    """Random numbers for every row (agent of a replica), as a function of the row's key and round.

    There is no state: the numbers of any round can be computed again, in any order. Compiled functions take key and
    round and fill their own arrays row by row (:mod:`~fedbandit_envs.randomness.threefry`,
    :mod:`~fedbandit_envs.randomness.variates`); the methods of this class return numbers for all rows at once.

    Attributes:
        key: Each row's key, uint32 ``(replicas, agents, 2)``; rows with different keys are independent.
        round: Each row's round, uint32 ``(replicas, agents)``. Draws of an
            :class:`~fedbandit_envs.randomness.episode.EpisodeRandomness` share its round counter, which advances.

    Example:
        >>> import numpy as np
        >>> seeds = np.array([[7, 8]], np.uint64)
        >>> draws = Draws.of_policy(seeds, 3)
        >>> draws.uniforms(2).shape, bool((draws.uniforms(2) == draws.uniforms(2)).all())
        ((1, 2, 2), True)
    """

    key: Array
    round: Array

    @classmethod
    def of_policy(cls, seeds: Array, round_: Array | int) -> "Draws":
        """Returns the draws of a randomised policy in a round.

        Args:
            seeds: Each row's seed, uint64 ``(replicas, agents)``, as given to ``reset`` of the policy.
            round_: The round: one integer for all rows, or ``(replicas, agents, 1)`` as in observations.
        """
        key = np.ascontiguousarray(seeds).view(np.uint32).reshape(*seeds.shape, 2)
        round_ = np.broadcast_to(round_, (*seeds.shape, 1))[..., 0]
        return cls(key, np.ascontiguousarray(round_, np.uint32))

    def uniforms(self, *shape: int) -> Array:
        """Returns this round's uniform numbers on [0, 1), float64 ``(replicas, agents, *shape)``."""
        drawn = np.empty((*self.round.shape, prod(shape)))
        _uniforms(self.key, self.round, drawn)
        return drawn.reshape(*self.round.shape, *shape)

    def normals(self, *shape: int) -> Array:
        """Returns this round's standard normal numbers, float64 ``(replicas, agents, *shape)``."""
        drawn = np.empty((*self.round.shape, prod(shape)))
        _normals(self.key, self.round, np.empty(padded_size(drawn.shape[2]), np.float32), drawn)
        return drawn.reshape(*self.round.shape, *shape)


@kernel
def _uniforms(key, round_, drawn):
    for r in range(drawn.shape[0]):
        for j in range(drawn.shape[1]):
            fill_uniforms(key[r, j, 0], key[r, j, 1], round_[r, j], drawn[r, j])


@kernel
def _normals(key, round_, scratch, drawn):
    for r in range(drawn.shape[0]):
        for j in range(drawn.shape[1]):
            fill_normals(key[r, j, 0], key[r, j, 1], round_[r, j], scratch)
            for i in range(drawn.shape[2]):
                drawn[r, j, i] = scratch[i]
