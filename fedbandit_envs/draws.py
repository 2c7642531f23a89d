"""Draws of rows: what each row is dealt in a round, as a function of its key and of the round alone."""

from math import prod
from typing import NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel
from fedbandit_envs.threefry import padded
from fedbandit_envs.variates import fill_normals, fill_uniforms

MOST_ROUNDS = 2**32 - 1
"""Of an episode: a round is one word of what draws follow from, and luck would come again."""


class Draws(NamedTuple):
    """One kind of draws for every agent of every replica.

    Nothing is kept between rounds: a round's draws can be had again, in any order, by whoever has key and round.
    Kernels take the two and draw row by row into scratch of their own (:mod:`~fedbandit_envs.threefry`,
    :mod:`~fedbandit_envs.variates`); the methods here do so for all rows at once.

    Attributes:
        key: uint32 ``(replicas, agents, 2)``: rows of different keys are independent.
        round: uint32 ``(replicas, agents)``: which of its rounds each row is in; whoever made the draws moves it on.
    """

    key: Array
    round: Array

    @classmethod
    def of_policy(cls, seeds: Array, round_: Array | int) -> "Draws":
        """Returns a policy's draws in a round.

        Args:
            seeds: One a row, uint64 ``(replicas, agents)``, as :meth:`Policy.reset` is given them.
            round_: One for all rows, or one each, ``(replicas, agents, 1)``, as observations have it.
        """
        key = np.ascontiguousarray(seeds).view(np.uint32).reshape(*seeds.shape, 2)
        round_ = np.broadcast_to(round_, (*seeds.shape, 1))[..., 0]
        return cls(key, np.ascontiguousarray(round_, np.uint32))

    def uniforms(self, *shape: int) -> Array:
        """Returns this round's numbers uniform on [0, 1), float64 ``(replicas, agents, *shape)``."""
        drawn = np.empty((*self.round.shape, prod(shape)))
        _uniforms(self.key, self.round, drawn)
        return drawn.reshape(*self.round.shape, *shape)

    def normals(self, *shape: int) -> Array:
        """Returns this round's standard normal numbers, float64 ``(replicas, agents, *shape)``."""
        drawn = np.empty((*self.round.shape, prod(shape)))
        _normals(self.key, self.round, np.empty(padded(drawn.shape[2]), np.float32), drawn)
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
