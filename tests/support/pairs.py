"""Parameters of tests of which ordinary runs try some, and continuous integration or slow runs all."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


def every_pair(*of: list[Any]) -> list[Any]:
    """Returns all combinations of one value of each list; half of them, every second one, are slow.

    With lists of two values each, and three lists or more, every pair of values of two lists is in the other half.
    """
    return [
        pytest.param(*values, marks=pytest.mark.slow if sum(places) % 2 else ())
        for places, values in zip(product(*(range(len(one)) for one in of)), product(*of), strict=True)
    ]


def every_fourth(values: Iterable[Any]) -> list[Any]:
    """Returns values or parameters of which all but every fourth one are slow."""
    params = [one if hasattr(one, "marks") else pytest.param(one) for one in values]
    return [
        one if place % 4 == 0 else one._replace(marks=(*one.marks, pytest.mark.slow))
        for place, one in enumerate(params)
    ]


def every_second(values: Iterable[Any]) -> list[Any]:
    """Returns parameters of which ordinary runs try every second one, and continuous integration the others.

    Parameters that are marked as slow stay so, and do not count.
    """
    params = [one if hasattr(one, "marks") else pytest.param(one) for one in values]
    left = [place for place, one in enumerate(params) if not one.marks][1::2]
    return [
        one._replace(marks=(pytest.mark.ci,)) if place in left else one for place, one in enumerate(params)
    ]
