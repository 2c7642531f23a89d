"""The one decorator for kernels."""

import numpy as np

from fedbandit_envs.compiled import kernel
from fedbandit_envs.procurement.rounds import expected_sums


@kernel
def _total(numbers):
    total = 0.0
    for number in numbers:
        total += number
    return total


@kernel
def _fused(a, b, c):
    return a * b + c


def test_sums_keep_their_order():
    # Whatever else the order is, lanes of a vector or pairs, one of the ones would be added to another first.
    numbers = np.array([1.0] + [2.0**-53] * 64)
    assert _total(numbers) == 1.0
    assert _total(numbers[::-1].copy()) == 1.0 + 2.0**-47


def test_products_are_rounded_before_they_are_added():
    # The product is 1 - 2^-60, which a fused multiplication and addition would not round to 1.
    assert _fused(1 - 2.0**-30, 1 + 2.0**-30, -1.0) == 0.0


def test_sums_of_a_round_go_four_at_a_time():
    # One after another, all of the small ones would be lost.
    quantity = np.array([1, 1, 1, 1, 1, 1, 1], np.int32)
    quality = np.array([1.0, 2.0**-53, 2.0**-53, 2.0**-53, 0.5, 0.25, 0.125])
    good, spent, units = expected_sums(quantity, quality, quality[::-1].copy())
    assert good == (1.0 + (2.0**-53 + 2.0**-53)) + 0.5 + 0.25 + 0.125
    assert units == 7.0
    assert np.isclose(spent, quality.sum(), rtol=1e-15)
