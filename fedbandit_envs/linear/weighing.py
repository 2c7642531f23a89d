"""Replacement of noisy sums of [x; y][x; y]^T by equally informative sums without noise, by shrinking eigenvalues."""

import numpy as np

from fedbandit_envs.basics.arrays import Array


def weighed(statistic: Array, variance: Array, reward_variance: float) -> Array:
    """Returns sums of [x; y][x; y]^T over fictitious exact observations that are as informative as given noisy sums.

    In each eigenvector of the noisy Gram matrix, with eigenvalue v (at least 0), the Gram matrix and the moment are
    multiplied by v / (v + nu / R^2).

    Args:
        statistic: Noisy sums of [x; y][x; y]^T, which contain the noisy Gram matrix of the contexts and the noisy sum
            of y x (the moment), ``(some, ..., dim + 1, dim + 1)``.
        variance: Variance nu of the noise in an entry, ``(some,)``.
        reward_variance: Variance R^2 > 0 of a reward.

    Returns:
        The statistic with the Gram matrix and moment of the fictitious observations, symmetric, same shape.
    """
    received = 0.5 * (statistic + np.swapaxes(statistic, -1, -2))
    values, vectors = np.linalg.eigh(received[..., :-1, :-1])
    values = np.maximum(values, 0.0)
    noise = (variance / reward_variance).reshape(-1, *(1,) * (values.ndim - 1))
    # If eigenvalue and noise are both 0, the quotient would be 0 / 0; the tiny number makes it 0.
    share = values / np.maximum(values + noise, np.finfo(np.float64).tiny)
    across = np.swapaxes(vectors, -1, -2)
    moment = (vectors * share[..., np.newaxis, :]) @ (across @ received[..., :-1, -1:])
    received[..., :-1, :-1] = (vectors * (share * values)[..., np.newaxis, :]) @ across
    received[..., :-1, -1] = received[..., -1, :-1] = moment[..., 0]
    return received
