"""The space of probability distributions."""

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import Error
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from fedbandit_envs.basics.arrays import Array

TOLERANCE = 1e-6
"""Largest difference from 1 that a sum of probabilities may have, enough for a softmax in float32."""


class Simplex(spaces.Box):
    """A space of probability distributions: entries >= 0 that sum to 1 over the last axis, up to :data:`TOLERANCE`.

    It is a ``Box``, so that libraries that handle boxes handle it. Samples are uniform on the simplex. Batches of it
    are ``Simplex`` spaces with one more axis.

    Example:
        >>> space = Simplex((3,), seed=7)
        >>> space.contains(space.sample()), space.contains(space.sample() / 2)
        (True, False)
    """

    def __init__(self, shape: tuple[int, ...], seed: int | np.random.Generator | None = None) -> None:
        """Sets the space.

        Args:
            shape: Shape of an element; the entries along its last axis sum to 1.
            seed: Seed of samples.

        Raises:
            ValueError: The last axis is empty.
        """
        if not shape or shape[-1] < 1:
            raise ValueError(f"shape is {shape!r}; at least one number on the last axis is required")
        super().__init__(0.0, 1.0, shape, np.float64, seed)

    def sample(self, mask: None = None, probability: None = None) -> Array:
        """Draws uniformly from the simplex.

        Raises:
            gymnasium.error.Error: A mask or probabilities are given; there are none here.
        """
        if mask is not None or probability is not None:
            raise Error(f"mask is {mask!r} and probability {probability!r}; None is required of a Simplex")
        drawn = self.np_random.standard_exponential(self.shape)
        return drawn / drawn.sum(axis=-1, keepdims=True)

    def contains(self, x: Any) -> bool:
        """Returns whether ``x`` is an element: an array of float64, or of a dtype that fits into it."""
        return (
            isinstance(x, np.ndarray)
            and np.can_cast(x.dtype, self.dtype)
            and x.shape == self.shape
            and bool((x >= 0.0).all() and (np.abs(x.sum(axis=-1) - 1.0) <= TOLERANCE).all())
        )

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, Simplex) and self.shape == other.shape

    def __repr__(self) -> str:
        return f"Simplex({self.shape})"


@batch_space.register(Simplex)
def _batch(space: Simplex, n: int = 1) -> Simplex:
    return Simplex((n, *space.shape), deepcopy(space.np_random))


# Gymnasium calls this function if the first space of the sequence is a Simplex; the others may be of another kind.
@batch_differing_spaces.register(Simplex)
def _batch_differing(some: Any) -> Simplex:  # type: ignore[misc]
    if any(space != some[0] for space in some):
        raise ValueError(f"spaces are {list(some)}; spaces of one shape are required")
    return _batch(some[0], len(some))
