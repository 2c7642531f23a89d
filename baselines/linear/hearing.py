"""What to make of noisy sums of statistics before they are added to one's own, though it proves nothing."""

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel
from fedbandit_envs.linear.ridge import factorise


def lifted(statistic: Array, variance: Array, ridge: float) -> Array:
    """Lifts the eigenvalues of ridge I + G + N to at least 2 s sqrt(dim), where s^2 = nu / 2, and takes ridge I off.

    G = sum x x^T, and N is symmetric Gaussian noise of the variance nu on the diagonal and half of it elsewhere. So the
    Priv-FairX-LinUCB of this package reaches what the thesis says of it. Nothing is known of the error.

    Args:
        statistic: What was heard, all of it together, ``(some, ..., dim + 1, dim + 1)``.
        variance: nu, ``(some,)``.
        ridge: > 0.

    Returns:
        The same, symmetric.
    """
    heard, dim = 0.5 * (statistic + np.swapaxes(statistic, -1, -2)), statistic.shape[-1] - 1
    matrices = heard.reshape(-1, dim + 1, dim + 1)
    least = np.repeat(2.0 * np.sqrt(0.5 * dim * variance), len(matrices) // max(len(variance), 1))
    # Once there is much data nothing lies below, which is quicker to see than eigenvalues are to find.
    low = _lies_below(matrices, least - ridge)
    values, vectors = np.linalg.eigh(matrices[low, :dim, :dim])
    values = np.maximum(values, (least[low] - ridge)[:, np.newaxis])
    matrices[low, :dim, :dim] = (vectors * values[:, np.newaxis]) @ np.swapaxes(vectors, -1, -2)
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
