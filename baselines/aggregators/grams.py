"""Sums of [x; y][x; y]^T as an inbox, and what noisy ones are worth.

Let G + N = sum_i g_i v_i v_i^T and b be the Gram matrix and the moment of all that was received, summed, and let the
noise in it have variance nu on the diagonal and half of that elsewhere. The error h - N theta then has about the
variance nu in every direction, where ||theta|| <= 1, besides R^2 g_i from the rewards, R^2 being the variance of one
reward. So in direction v_i the sum is worth g_i^2 / (g_i + nu / R^2) observations, and none where g_i <= 0; the moment
is shrunk by g_i / (g_i + nu / R^2). This is done to the sum, not message by message: then the directions in which
single messages have too large a g_i would be believed, and errors would no longer cancel. No bound of the error is
known.
"""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec, Sum
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.weighing import weighed

GRAM = "statistic"
"""Name in releases of sums of [x; y][x; y]^T."""

NOISE = variance_of(GRAM)
"""Name of the variances of the noise on the diagonals of :data:`GRAM`."""


def gram_inbox(spec: PolicySpec, rows: tuple[int, ...]) -> InboxSpec:
    """Returns the specification of an inbox of sums of [x; y][x; y]^T, and of the noise in them where it is announced.

    Args:
        spec: What agents see and release; there is an inbox.
        rows: ``(replicas, agents)``.
    """
    inbox = InboxSpec.of(spec, rows, GRAM)
    # Messages hold one sum, or one for each of several estimators.
    shape = inbox.shapes[GRAM] if len(inbox.shapes[GRAM]) == 3 else (1, *inbox.shapes[GRAM])
    noise = {NOISE: shape[:-1]} if f"inbox_{NOISE}" in spec.observation.spaces else {}
    return inbox._replace(shapes={GRAM: shape, **noise}, weigh=_WeighedGrams)


def gram_arrays(observation: Arrays) -> Arrays:
    """Returns an observation whose inbox is as :func:`gram_inbox` declares it: of variances the diagonals alone."""
    noise = observation.get(f"inbox_{NOISE}")
    if noise is None:
        return observation
    return {**observation, f"inbox_{NOISE}": np.diagonal(noise, axis1=-2, axis2=-1)}


def noise_of(totals: Mapping[str, Array], rows: tuple[int, ...]) -> Array:
    """Returns the variance of the noise on the diagonals of what was received, ``(replicas, agents)``.

    Args:
        totals: Of an aggregate of :func:`gram_inbox`; 0 where they hold no noise that is not accounted for.
        rows: ``(replicas, agents)``.
    """
    if NOISE not in totals:
        return np.zeros(rows)
    variance: Array = np.maximum(totals[NOISE].max(axis=(-2, -1)), 0.0)
    return variance


class _WeighedGrams(Aggregator):
    """Gram matrices and moments of the exact observations that the sum of all messages is worth."""

    def __init__(self, reward_variance: float) -> None:
        self._reward_variance = reward_variance

    def _begin(self, inbox: InboxSpec) -> None:
        self._sum = Sum().start(inbox)
        # All noise is accounted for, so that none of it is among the totals.
        self._totals = {GRAM: np.zeros_like(self._sum.totals[GRAM])}

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        self._sum.add(observation, arrived, exact, weight)
        news = observation["inbox_mask"].any(axis=-1)
        total = self._sum.totals[GRAM]
        variance = noise_of(self._sum.totals, total.shape[:2])
        self.totals[GRAM][news] = weighed(total[news], variance[news], self._reward_variance)
