"""Shuffled randomised response by enumeration of the sums of bits."""

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom


def stick(epsilon: float, p: np.ndarray, q: np.ndarray) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@cache
def response(n: int, ones: int, first: int, truth: float) -> np.ndarray:
    """Distribution of the sum of n flipped bits: of the victim's and of others, of which `ones` are 1."""
    flip = 1 - truth
    others = np.convolve(
        binom.pmf(np.arange(ones + 1), ones, truth), binom.pmf(np.arange(n - ones), n - 1 - ones, flip)
    )
    return np.convolve(others, [flip, truth] if first else [truth, flip])


def response_delta(epsilon: float, n: int, eps0: float) -> float:
    """The delta of shuffled binary randomised response: the worst direction and number of ones (of 21, beyond 60)."""
    truth = 1 / (1 + math.exp(-eps0))
    worst = 0.0
    for ones in range(n) if n <= 60 else np.linspace(0, n - 1, 21).astype(int):
        p, q = (response(n, int(ones), first, truth) for first in (0, 1))
        worst = max(worst, stick(epsilon, p, q), stick(epsilon, q, p))
    return worst


def response_epsilon(delta: float, n: int, eps0: float) -> float:
    return brentq(lambda epsilon: response_delta(epsilon, n, eps0) - delta, 0, eps0, xtol=1e-6)
