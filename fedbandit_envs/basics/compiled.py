"""The decorator with which all compiled functions (kernels) of this package are compiled by Numba."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit

kernel: Callable[..., Any] = partial(
    njit,
    cache=True,
    # Kernels release the GIL, so that Python threads can step different replicas in parallel. Numba's own threads are
    # not used: they abort the process after a fork (vector environments fork) or when two Python threads step at once,
    # depending on Numba's threading layer.
    nogil=True,
    # Division by zero yields inf instead of a branch that forbids vector instructions.
    error_model="numpy",
    # Only the sign of zeros may change ("nsz"); sums keep the order in which they are written. If the compiler could
    # reorder them, their last bit would depend on the width of the processor's vector registers and, since loops whose
    # arrays might overlap are not reordered, on the addresses of arrays. Sums where speed matters are written four
    # terms at a time instead.
    fastmath={"nsz"},
)
"""Compiles a function of arrays to machine code, cached on disk, releasing the GIL while it runs."""
