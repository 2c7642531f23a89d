"""Arrays by name as one array that holds all values of an agent side by side, and back."""

from math import prod

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays


def flatten(arrays: Arrays) -> Array:
    """Returns all values of each agent side by side, float64 ``(replicas, agents, values)``; a copy."""
    return np.concatenate(
        [array.reshape(*array.shape[:2], -1) for array in arrays.values()], axis=2, dtype=np.float64
    )


def unflatten(values: Array, like: Arrays) -> Arrays:
    """Returns arrays of the names and shapes of ``like`` from :func:`flatten`'s result; views of ``values``."""
    arrays = {}
    start = 0
    for name, array in like.items():
        stop = start + prod(array.shape[2:])
        arrays[name] = values[..., start:stop].reshape(array.shape)
        start = stop
    return arrays
