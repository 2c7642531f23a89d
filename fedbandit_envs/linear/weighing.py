"""Noisy sums of [x; y][x; y]^T turned into as many exact observations as they are worth."""

import numpy as np

from fedbandit_envs.arrays import Array


def weighed(statistic: Array, variance: Array, reward_variance: float) -> Array:
    """Turns what was heard, summed, into as many exact observations as it is worth.

    Args:
        statistic: G + N, b and what is beside them, ``(some, ..., dim + 1, dim + 1)``.
        variance: nu, ``(some,)``.
        reward_variance: R^2 > 0.

    Returns:
        The same with the Gram matrix and the moment of these observations, symmetric.
    """
    heard = 0.5 * (statistic + np.swapaxes(statistic, -1, -2))
    values, vectors = np.linalg.eigh(heard[..., :-1, :-1])
    values = np.maximum(values, 0.0)
    noise = (variance / reward_variance).reshape(-1, *(1,) * (values.ndim - 1))
    # Where both are 0 there is nothing to weigh.
    share = values / np.maximum(values + noise, np.finfo(np.float64).tiny)
    across = np.swapaxes(vectors, -1, -2)
    moment = (vectors * share[..., np.newaxis, :]) @ (across @ heard[..., :-1, -1:])
    heard[..., :-1, :-1] = (vectors * (share * values)[..., np.newaxis, :]) @ across
    heard[..., :-1, -1] = heard[..., -1, :-1] = moment[..., 0]
    return heard
