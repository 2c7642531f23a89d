"""All values of an agent side by side, whatever arrays they come in."""

from math import prod

import numpy as np

from fedbandit_envs.arrays import Array, Arrays


def flatten(arrays: Arrays) -> Array:
    """Puts all values of an agent side by side: float64 ``(replicas, agents, values)``."""
    return np.concatenate(
        [array.reshape(*array.shape[:2], -1) for array in arrays.values()], axis=2, dtype=np.float64
    )


def unflatten(values: Array, like: Arrays) -> Arrays:
    """Undoes :func:`flatten`: arrays of the names and shapes of ``like``, views of ``values``."""
    arrays = {}
    start = 0
    for name, array in like.items():
        stop = start + prod(array.shape[2:])
        arrays[name] = values[..., start:stop].reshape(array.shape)
        start = stop
    return arrays
