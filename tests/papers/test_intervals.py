"""What pages say of their intervals."""

import numpy as np
import pytest
from scipy.special import ndtri, stdtr

from fedbandit_envs.experiments.statistics import ratio_with_interval


def test_ratio_intervals_of_few_seeds_cover_as_often_as_pages_say():
    """400 experiments of five runs: 339 expected, 380 if it were 95 %; 29 more or less is a four-sigma event."""
    rng = np.random.default_rng(1)
    below = 100 + 10 * rng.standard_normal((400, 5))
    above = 0.5 * below + 6 * rng.standard_normal((400, 5))
    intervals = (ratio_with_interval(*pair, resamples=300) for pair in zip(above, below, strict=True))
    covered = sum(low <= 0.5 <= high for _, low, high in intervals)
    # The percentile bootstrap divides by the number of values, and uses the normal quantile instead of Student's.
    coverage = 1 - 2 * stdtr(4, -ndtri(0.975) * (4 / 5) ** 0.5)
    assert abs(covered - 400 * coverage) <= 29
    assert coverage == pytest.approx(0.85, abs=0.005)
