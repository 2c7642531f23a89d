"""Quantiles of the generalised arcsine distribution Beta(mu, 1 - mu) (compiled).

With w = x / (1 - x), the odds of x, its distribution function is

    F(x) = sin(pi mu)/pi * integral from 0 to w of t^(mu - 1) / (1 + t) dt.

For w <= 1 the factor 1 / (1 + t) is replaced by a polynomial sum c_n t^n, which differs from it by at most 1e-15 on
[0, 1]. Then F(x) = sin(pi mu)/pi * w^mu S(w) with S(w) = sum c_n w^n / (mu + n). For w > 1 the symmetry
1 - F(x; mu) = F(1 - x; 1 - mu) is used.
"""

from fractions import Fraction
from math import comb

import numpy as np

from fedbandit_envs.basics.compiled import inner_kernel, kernel

TERMS = 20
"""Number of terms of the polynomial."""

_STEPS = 8
"""Largest number of steps of the iteration; three suffice, unless F is too steep for float64."""
_ENOUGH = 1e-5
"""The iteration ends after a step in ln w that is smaller than this: the remaining error is of its third power."""


def _polynomial() -> list[float]:
    """Returns the coefficients c_n of a polynomial in t that approximates 1 / (1 + t) on [0, 1].

    The polynomial is (1 - P(t) / P(-1)) / (1 + t) with P(t) = T_n(1 - 2 t), where T_n is Chebyshev's polynomial of
    degree n = ``TERMS``; its error is at most 2 / 5.8^n (Cohen, Rodriguez Villegas, Zagier: Convergence acceleration of
    alternating series, Experimental Mathematics 2000).
    """
    chebyshev = [
        Fraction((-4) ** power * TERMS * comb(TERMS + power, 2 * power), TERMS + power)
        for power in range(TERMS + 1)
    ]
    at_minus_one = sum(factor * (-1) ** power for power, factor in enumerate(chebyshev))
    rest = [Fraction(int(power == 0)) - factor / at_minus_one for power, factor in enumerate(chebyshev)]
    quotient: list[Fraction] = []
    for power in range(TERMS):
        quotient.append(rest[power] - (quotient[-1] if quotient else 0))
    return [float(factor) for factor in quotient]


_C = np.array(_polynomial())


@kernel(inline="always")
def _below_half(probability, log_scale, mu, factor):
    """Returns the quantile x, if it is at most 1/2: the solution of F(x) = probability.

    ``factor[n]`` is c_n / (mu + n), and ``log_scale`` is ln(sin(pi mu)/pi).
    """
    log_target = np.log(probability) - log_scale
    # The starting point solves F(x) = probability with F approximated by a power of w. Halley's method then improves
    # it in ln w, of which ln F is a concave and nearly linear function.
    y = (log_target + np.log(mu)) / mu
    y = 0.0 if y > 0.0 else y
    for _ in range(_STEPS):
        w = np.exp(y)
        square = w * w
        even, odd = factor[TERMS - 2], factor[TERMS - 1]
        for n in range(TERMS - 4, -1, -2):
            even = even * square + factor[n]
            odd = odd * square + factor[n + 1]
        series = even + w * odd
        slope = 1.0 / ((1.0 + w) * series)
        newton = (mu * y + np.log(series) - log_target) / slope
        step = newton / (1.0 - 0.5 * newton * (mu - slope - w / (1.0 + w)))
        y -= step
        if abs(step) < _ENOUGH:
            break
    w = np.exp(0.0 if y > 0.0 else y)
    return w / (1.0 + w)


@inner_kernel
def arcsine_quantile(mu, probability, factor):
    """Returns the quantile of Beta(mu, 1 - mu).

    Args:
        mu: Mean of the distribution, in (0, 1).
        probability: Value of the distribution function at the quantile, in [0, 1).
        factor: Scratch array, ``(TERMS,)``.
    """
    if probability <= 0.0:
        return 0.0
    log_scale = np.log(np.sin(np.pi * (mu if mu < 0.5 else 1.0 - mu)) / np.pi)
    half = 0.0
    for n in range(TERMS):
        factor[n] = _C[n] / (mu + n)
    for n in range(TERMS):
        half += factor[n]
    half *= np.exp(log_scale)
    above = probability > half
    if above:
        mu, probability = 1.0 - mu, 1.0 - probability
        for n in range(TERMS):
            factor[n] = _C[n] / (mu + n)
    quantile = _below_half(probability, log_scale, mu, factor)
    return 1.0 - quantile if above else quantile
