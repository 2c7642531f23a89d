"""Conversion between the named arrays of a release and one array that holds all numbers of an agent side by side."""

from math import prod

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.privacy import variance_of


def flatten(arrays: Arrays) -> Array:
    """Returns all numbers of each agent side by side, as a new float64 array ``(replicas, agents, values)``."""
    return np.concatenate(
        [array.reshape(*array.shape[:2], -1) for array in arrays.values()], axis=2, dtype=np.float64
    )


def unflatten(values: Array, variances: Array, like: Arrays) -> Arrays:
    """Returns the named arrays of a release, and beside them arrays of noise variances; all are views.

    Args:
        values: The numbers of each agent side by side, ``(replicas, agents, values)``, as :func:`flatten` returns them.
        variances: The variance of the noise in each of them, same shape.
        like: Arrays with the names and shapes of the release, ``(replicas, agents, ...)``.

    Returns:
        The values by the names in ``like``, and the variances by the names that
        :func:`~fedbandit_envs.core.privacy.variance_of` makes of these.
    """
    arrays: Arrays = {}
    for rename, flat in ((str, values), (variance_of, variances)):
        start = 0
        for name, array in like.items():
            stop = start + prod(array.shape[2:])
            arrays[rename(name)] = flat[..., start:stop].reshape(array.shape)
            start = stop
    return arrays
