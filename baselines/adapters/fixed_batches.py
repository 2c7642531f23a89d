"""Batches of one fixed size, so that a network's output for an agent does not depend on how many agents there are."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.views.control import Observation

BATCH = 64
"""Number of rows (agents of replicas) in a batch for a network.

Matrix products of different sizes are summed in different orders. So the output of a network for a single row may
differ, in the last bit, from that for the same row in a batch of forty. With batches of one size, filled up with zeros,
it does not.
"""


def in_fixed_batches(rows: Observation, size: int = BATCH) -> Iterator[tuple[slice, Any]]:
    """Yields batches of a fixed number of rows, copied from arrays; the last batch is filled up with zeros.

    Args:
        rows: One array, or arrays by name, whose first axis goes over rows.
        size: Number of rows in a batch.

    Yields:
        The slice of ``rows`` that the batch contains, and the batch.
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
