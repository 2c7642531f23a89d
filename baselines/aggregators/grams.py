"""Received sums of [x; y][x; y]^T, and the number of exact observations that are as informative as noisy sums.

A received sum has a Gram matrix G of contexts x and a moment b of rewards times contexts, with noise N and h. Let
G + N = sum_i g_i v_i v_i^T be the eigenvalue decomposition of the sum over all messages, whose noise has variance nu on
the diagonal and nu / 2 elsewhere. The error h - N theta then has about the variance nu in every direction, where
||theta|| <= 1, besides R^2 g_i from the rewards, R^2 being the variance of one reward. So in direction v_i the sum is
as informative as g_i^2 / (g_i + nu / R^2) exact observations, and as none where g_i <= 0; the moment is shrunk by
g_i / (g_i + nu / R^2). The formula is applied to the sum of all messages. Message by message it would trust directions
in which noise made the g_i of one message too large, and the noise of different messages would no longer cancel. No
bound of the error is known.
"""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec, Sum
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.actions import weighed

GRAM = "statistic"
"""Name of the array with sums of [x; y][x; y]^T, as senders release it."""

NOISE = variance_of(GRAM)
"""Name of the array with the variances of the noise in :data:`GRAM`, of which the diagonals are used."""


def gram_inbox(spec: PolicySpec, rows: tuple[int, ...]) -> InboxSpec:
    """Returns the description of received sums of [x; y][x; y]^T, with variances of their noise where announced.

    Args:
        spec: Public description of the environment, whose agents must receive messages.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
    """
    inbox = InboxSpec.of(spec, rows, GRAM)
    # Messages hold one sum, or one sum for each of several estimators: then the array has one more leading axis.
    shape = inbox.shapes[GRAM] if len(inbox.shapes[GRAM]) == 3 else (1, *inbox.shapes[GRAM])
    noise = {NOISE: shape[:-1]} if f"inbox_{NOISE}" in spec.observation.spaces else {}
    return inbox._replace(shapes={GRAM: shape, **noise}, weigh=_WeighedGrams)


def gram_arrays(observation: Arrays) -> Arrays:
    """Returns the observation with the received matrices of noise variances replaced by their diagonals.

    The arrays then have the shapes that :func:`gram_inbox` declares.
    """
    noise = observation.get(f"inbox_{NOISE}")
    if noise is None:
        return observation
    return {**observation, f"inbox_{NOISE}": np.diagonal(noise, axis1=-2, axis2=-1)}


def noise_of(totals: Mapping[str, Array], rows: tuple[int, ...]) -> Array:
    """Returns the largest variance of the noise on the diagonals of the received sums, ``(replicas, agents)``.

    Args:
        totals: The ``totals`` of an aggregator of these sums. Without an array of noise variances among them, because
            there is no noise or the aggregator has already accounted for it, the result is 0.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
    """
    if NOISE not in totals:
        return np.zeros(rows)
    variance: Array = np.maximum(totals[NOISE].max(axis=(-2, -1)), 0.0)
    return variance


class _WeighedGrams(Aggregator):
    """Gram matrices and moments of exact observations that are as informative as the sum of all messages."""

    def __init__(self, reward_variance: float) -> None:
        self._reward_variance = reward_variance

    def _begin(self, inbox: InboxSpec) -> None:
        self._sum = Sum().start(inbox)
        # The totals hold no array of noise variances: the weights account for all noise.
        self._totals = {GRAM: np.zeros_like(self._sum.totals[GRAM])}

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        self._sum.add(observation, arrived, exact, weight)
        news = observation["inbox_mask"].any(axis=-1)
        total = self._sum.totals[GRAM]
        variance = noise_of(self._sum.totals, total.shape[:2])
        self.totals[GRAM][news] = weighed(total[news], variance[news], self._reward_variance)
