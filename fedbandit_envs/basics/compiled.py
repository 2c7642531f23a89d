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
    # Sums keep the order in which they are written. Were they free to be reordered, the last bit would hang on how wide
    # a processor's vector lanes are and, since loops that might overlap another array are not reordered, on where in
    # memory arrays happen to lie. Hot sums are written four at a time instead.
    fastmath={"nsz"},
)
"""Compiles a function of arrays to machine code, cached on disk, releasing the GIL while it runs."""
