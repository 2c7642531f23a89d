"""Arrays by name as one array that holds all values of an agent side by side, and back."""

from math import prod

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.noise_variance import variance_of


def flatten(arrays: Arrays) -> Array:
    """Returns all values of each agent side by side, float64 ``(replicas, agents, values)``; a copy."""
    return np.concatenate(
        [array.reshape(*array.shape[:2], -1) for array in arrays.values()], axis=2, dtype=np.float64
    )


def unflatten(values: Array, variances: Array, like: Arrays) -> Arrays:
    """Returns values and the variances of their noise as arrays by name; views.

    Args:
        values: As :func:`flatten` returns them.
        variances: Value by value, in the same shape.
        like: Arrays of the names and shapes that the result has.

    Returns:
        The values by the names of ``like``, then the variances by the names that
        :func:`~fedbandit_envs.core.noise_variance.variance_of` gives these.
    """
    arrays: Arrays = {}
    for rename, flat in ((str, values), (variance_of, variances)):
        start = 0
        for name, array in like.items():
            stop = start + prod(array.shape[2:])
            arrays[rename(name)] = flat[..., start:stop].reshape(array.shape)
            start = stop
    return arrays
