"""Distributions of rewards with a given mean, clipped to [-B, B]."""

from fractions import Fraction
from math import comb
from typing import Literal, get_args

import numpy as np
import scipy  # imports its large parts, such as special, only when they are used

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.basics.compiled import inner_kernel, kernel
from fedbandit_envs.randomness.draws import EpisodeRandomness, normal_pair, threefry, u32, uniform
from fedbandit_envs.randomness.streams import Purpose

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


RewardName = Literal["beta", "bernoulli", "normal", "logistic"]

_BETA, _NORMAL = (get_args(RewardName).index(name) for name in ("beta", "normal"))


class RewardDistribution:
    """A distribution of rewards with a given mean.

    The reward of an agent in a round is a monotone function of the mean and of one random number. So with common random
    numbers, an arm with a larger mean never gives a smaller reward.

    Attributes:
        name: The distribution's name.
        sd: Standard deviation of normal rewards.
    """

    def __init__(self, name: RewardName, sd: float, bound: float, offset: float) -> None:
        """Sets the distribution.

        Args:
            name: ``"beta"`` (Beta(mu, 1 - mu), as in the FedUCB paper) or ``"bernoulli"``, which both need means in
                [0, 1]; ``"normal"`` (N(mu, sd^2)); or ``"logistic"`` (1 with the probability mu, else 0, where mu is a
                logistic function of <x, theta*>, see :meth:`link`).
            sd: Standard deviation of normal rewards, >= 0.
            bound: B > 0; rewards are clipped to [-B, B].
            offset: Number that is added to every reward before it is clipped; 0 with logistic rewards, of which
                policies expect 0 or 1.

        Raises:
            TypeError: A parameter is no number.
            ValueError: A name is unknown, a number out of its range, or an offset is given with logistic rewards.
        """
        self._distribution = get_args(RewardName).index(require_choice("reward", name, get_args(RewardName)))
        self.name: RewardName = name
        self.sd = require_number("reward_sd", sd, 0, np.inf)
        self._bound = require_number("reward_bound", bound, 0, np.inf, open_below=True)
        self._offset = require_number("reward_offset", offset, -np.inf, np.inf)
        self.needs_probabilities = name in ("beta", "bernoulli")
        self.logistic = name == "logistic"
        if self.logistic and self._offset != 0:
            raise ValueError(f"reward_offset must be 0 with reward='logistic', got {self._offset}")

    def link(self, scores: Array, means: Array) -> None:
        """Computes expected rewards from <x, theta*> = z: with logistic rewards 1 / (1 + exp(-z)), with others z.

        Args:
            scores: <x, theta*>, any shape; with rewards that are not logistic the same array as ``means``.
            means: Output: expected rewards, same shape.
        """
        if self.logistic:
            scipy.special.expit(scores, out=means)

    def begin(self, randomness: EpisodeRandomness) -> None:
        """Prepares the draws of an episode."""
        self._draws, self._scratch = randomness.draws(Purpose.OUTCOME), np.empty(TERMS)

    def draw(self, active: Array, arm: Array, means: Array, reward: Array, clipped: Array) -> None:
        """Draws the rewards of one round.

        Args:
            active: Whether each agent acts, bool ``(replicas, agents)``; rewards of others are 0.
            arm: Arms pulled, int64 ``(replicas, agents)``.
            means: Expected rewards of all arms, ``(replicas, agents, arms)``.
            reward: Output: rewards, clipped to [-B, B], ``(replicas, agents)``.
            clipped: Output: whether each was clipped, bool ``(replicas, agents)``.
        """
        _draw(
            active, arm, means, self._distribution, self.sd, self._bound, self._offset, self._draws.key,
            self._draws.round, self._scratch, reward, clipped,
        )  # fmt: skip


@kernel
def _draw(active, arm, means, kind, sd, bound, offset, key, round_, scratch, reward, clipped):
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            paid = 0.0
            if active[r, j]:
                mean = means[r, j, arm[r, j]]
                x, y = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(0))
                if kind == _NORMAL:
                    paid = mean + sd * np.float64(normal_pair(x, y)[0])
                elif kind != _BETA:
                    paid = np.float64(uniform(x, y) >= 1.0 - mean)
                elif 0.0 < mean < 1.0:
                    paid = arcsine_quantile(mean, uniform(x, y), scratch)
                else:
                    # With a mean of 0 or 1 the reward is the mean.
                    paid = mean
                paid += offset
            clipped[r, j] = abs(paid) > bound
            reward[r, j] = (bound if paid > 0.0 else -bound) if clipped[r, j] else paid
