"""Parameters of tests of which ordinary runs try half: every value, and slow runs all combinations."""

from itertools import product
from typing import Any

import pytest


def every_pair(*of: list[Any]) -> list[Any]:
    """Returns all combinations of one value of each list; half of them, every second one, are slow.

    With lists of two values each, and three lists or more, every pair of values of two lists is in the other half.

    Args:
        *of: The lists.
    """
    return [
        pytest.param(*values, marks=pytest.mark.slow if sum(places) % 2 else ())
        for places, values in zip(product(*(range(len(one)) for one in of)), product(*of), strict=True)
    ]
