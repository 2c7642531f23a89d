"""Noisy sums of [x; y][x; y]^T, replaced by sums of exact observations with the same information."""

import numpy as np

from fedbandit_envs.basics.arrays import Array


def weighed(statistic: Array, variance: Array, reward_variance: float) -> Array:
    """Returns the sums of exact observations that are as informative as noisy sums.

    Args:
        statistic: Noisy sums of [x; y][x; y]^T, with the Gram matrix G + N and the moment b, ``(some, ..., dim + 1, dim
            + 1)``.
        variance: Variance nu of the noise in an entry, ``(some,)``.
        reward_variance: Variance R^2 > 0 of a reward.

    Returns:
        The statistic with the Gram matrix and moment of these observations, symmetric.
    """
    received = 0.5 * (statistic + np.swapaxes(statistic, -1, -2))
    values, vectors = np.linalg.eigh(received[..., :-1, :-1])
    values = np.maximum(values, 0.0)
    noise = (variance / reward_variance).reshape(-1, *(1,) * (values.ndim - 1))
    # Where both are 0 there is nothing to weigh.
    share = values / np.maximum(values + noise, np.finfo(np.float64).tiny)
    across = np.swapaxes(vectors, -1, -2)
    moment = (vectors * share[..., np.newaxis, :]) @ (across @ received[..., :-1, -1:])
    received[..., :-1, :-1] = (vectors * (share * values)[..., np.newaxis, :]) @ across
    received[..., :-1, -1] = received[..., -1, :-1] = moment[..., 0]
    return received
