"""Statistics of results over seeds."""

import numpy as np
from scipy.stats import t as student

from fedbandit_envs.federation import Array


def mean_and_half_width(values: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Returns the mean over the last axis and the half width of its Student-t confidence interval.

    Args:
        values: One value a seed on the last axis.
        level: Coverage of the interval.

    Returns:
        Mean and half width without the last axis; the half width is NaN for a single seed.
    """
    count = values.shape[-1]
    mean = values.mean(axis=-1)
    if count < 2:
        return mean, np.full_like(mean, np.nan)
    quantile = student.ppf(0.5 + level / 2.0, count - 1)
    return mean, quantile * values.std(axis=-1, ddof=1) / np.sqrt(count)
