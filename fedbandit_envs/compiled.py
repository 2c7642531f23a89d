"""The one decorator for compiled row kernels."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit

kernel: Callable[..., Any] = partial(
    njit,
    cache=True,
    # Without the GIL, replicas split over Python threads run side by side. Numba's own threads are not
    # used: its layers abort the process either after a fork (vector environments fork) or when two
    # Python threads step at once, and replicas are independent anyway.
    nogil=True,
    # Division by zero yields inf instead of a branch that forbids vector instructions.
    error_model="numpy",
    # Sums may be reordered into vector lanes; NaN and infinity keep their meaning.
    fastmath={"reassoc", "contract", "nsz"},
)
"""Compiles a function of arrays to machine code, cached on disk, releasing the GIL while it runs."""
