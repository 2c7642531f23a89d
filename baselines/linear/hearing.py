"""What to make of noisy sums of statistics before they are added to one's own: ways that prove nothing, but may pay.

What was heard, all of it together, is G + N and its moment: G = sum x x^T, and symmetric Gaussian noise N whose
variance nu on the diagonal (half of it elsewhere) is announced. Statistics are ``(some, ..., dim + 1, dim + 1)``, with
one variance for each of ``some``; what is returned is symmetric.
"""

import numpy as np

from fedbandit_envs.compiled import kernel
from fedbandit_envs.federation import Array
from fedbandit_envs.linear.ridge import factorise


def lifted(statistic: Array, variance: Array, ridge: float) -> Array:
    """Lifts the eigenvalues of ridge I + G + N to at least 2 s sqrt(dim), where s^2 = nu / 2, and takes ridge I off.

    So the Priv-FairX-LinUCB of this package reaches what the thesis says of it. Nothing is known of the error.

    Args:
        statistic: What was heard.
        variance: nu, ``(some,)``.
        ridge: > 0.
    """
    heard, dim = _symmetric(statistic)
    matrices = heard.reshape(-1, dim + 1, dim + 1)
    least = np.repeat(2.0 * np.sqrt(0.5 * dim * variance), len(matrices) // max(len(variance), 1))
    # Once there is much data nothing lies below, which is quicker to see than eigenvalues are to find.
    low = _lies_below(matrices, least - ridge)
    values, vectors = np.linalg.eigh(matrices[low, :dim, :dim])
    matrices[low, :dim, :dim] = _composed(np.maximum(values, (least[low] - ridge)[:, np.newaxis]), vectors)
    return heard


@kernel
def _lies_below(matrices, least):
    """Says whether some eigenvalue of the top left block of each matrix is below a bound, bool ``(matrices,)``."""
    dim = matrices.shape[1] - 1
    low = np.zeros(matrices.shape[0], np.bool_)
    block, factor = np.empty((dim, dim)), np.zeros((dim, dim))
    for n in range(matrices.shape[0]):
        for i in range(dim):
            for h in range(dim):
                block[i, h] = matrices[n, i, h]
            block[i, i] -= least[n]
        low[n] = np.isnan(factorise(block, factor))
    return low


def weighed(statistic: Array, variance: Array, reward_variance: float) -> Array:
    """Turns what was heard into as many exact observations as it is worth.

    With G + N = sum_i g_i v_i v_i^T, the error of h - N theta has about the variance nu in every direction, where
    ||theta|| <= 1, beside that of g_i rewards. So in direction v_i it is worth g_i^2 / (g_i + nu / R^2) observations,
    R^2 being the variance of one reward, and nothing where g_i <= 0: pure noise weighs next to nothing.

    Args:
        statistic: What was heard.
        variance: nu, ``(some,)``.
        reward_variance: R^2 > 0.
    """
    heard, dim = _symmetric(statistic)
    values, vectors = np.linalg.eigh(heard[..., :dim, :dim])
    values = np.maximum(values, 0.0)
    noise = _each(variance / reward_variance, values)
    # Where both are 0 there is nothing to weigh.
    share = values / np.maximum(values + noise, np.finfo(np.float64).tiny)
    moment = (_composed(share, vectors) @ heard[..., :dim, dim:])[..., 0]
    heard[..., :dim, :dim] = _composed(share * values, vectors)
    heard[..., :dim, dim] = heard[..., dim, :dim] = moment
    return heard


def _symmetric(statistic: Array) -> tuple[Array, int]:
    return 0.5 * (statistic + np.swapaxes(statistic, -1, -2)), statistic.shape[-1] - 1


def _each(numbers: Array, values: Array) -> Array:
    """Gives one number for each of ``some`` the axes of eigenvalues."""
    return numbers.reshape(-1, *(1,) * (values.ndim - 1))


def _composed(values: Array, vectors: Array) -> Array:
    return (vectors * values[..., np.newaxis, :]) @ np.swapaxes(vectors, -1, -2)
