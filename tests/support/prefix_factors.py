"""The matrices that noise on prefix sums is made with, found by feeding it one draw at a time."""

import math

import numpy as np

from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES


def measured_factor(noise, n: int) -> np.ndarray:
    """B: what each draw does to the prefix sums of 1 .. n, by feeding one draw a row."""
    total = sum(noise.draws(z) for z in range(1, n + 1))
    noise.start(total, 1)
    every = np.arange(total)
    rows, done = [], 0
    for z in range(1, n + 1):
        draws = np.zeros((noise.draws(z), total, 1))
        for i in range(noise.draws(z)):
            draws[i, done + i] = 1.0
        done += noise.draws(z)
        rows.append(noise.advance(every, z, draws)[:, 0])
    return np.cumsum(rows, axis=0)


def column_squares(factor: np.ndarray) -> np.ndarray:
    """The largest squared norm of a column of C's first z rows, for z = 1 .. n, where B is square.

    What is released of the windows is B C: C is B's inverse times the prefix sums.
    """
    n = len(factor)
    c = np.linalg.solve(factor, np.tril(np.ones((n, n))))
    return np.cumsum(c**2, axis=0).max(axis=1)


def counted(mechanism: str, z: int, planned: int) -> float:
    """The squared column norm that is counted of the first z releases."""
    if mechanism == "sqrt_toeplitz":
        return sum((math.comb(2 * k, k) / 4**k) ** 2 for k in range(z))
    if mechanism == "independent":
        return 1.0
    if mechanism == "blt":
        betrayed = column_squares(measured_factor(NOISES["blt"](planned), planned))
        return betrayed[min(1 << (z - 1).bit_length(), planned) - 1]
    return z.bit_length()
