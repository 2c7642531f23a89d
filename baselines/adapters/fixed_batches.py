"""Batches of one fixed size, so that a network's answer for a row does not depend on the number of rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.views.rows import Observation

BATCH = 64
"""Rows that a network is fed at once.

Matrix products of different sizes are summed in different orders: a network fed with one row may answer otherwise, in
the last bit, than for the same row among forty. In blocks of one size, filled up with zeros, it does not.
"""


def in_fixed_batches(rows: Observation, size: int = BATCH) -> Iterator[tuple[slice, Any]]:
    """Yields rows in batches of one size, as copies that are padded with zeros.

    Args:
        rows: One array, or arrays by name, leading axis ``rows``.
        size: Rows of a batch.

    Yields:
        The slice of the rows in the batch, and the batch.
    """
    number = len(next(iter(rows.values())) if isinstance(rows, dict) else rows)
    for start in range(0, number, size):
        here = slice(start, min(start + size, number))
        if isinstance(rows, dict):
            yield here, {name: _filled_up(array[here], size) for name, array in rows.items()}
        else:
            yield here, _filled_up(rows[here], size)


def _filled_up(rows: Array, size: int) -> Array:
    block = np.zeros((size, *rows.shape[1:]), rows.dtype)
    block[: len(rows)] = rows
    return block
