"""Events that are likelier under one of two neighbouring histories, and the epsilon that their rates prove.

How often they happen under each history bounds epsilon from below:

* :func:`best_event`, for Gaussian noise: the matched filter (the log-likelihood ratio of what is released) with one
  threshold between the two histories. The rates of true and false alarms bound mu, and mu gives epsilon: what is
  refuted is that the releases are Gaussian with the mu that is claimed.
* :func:`best_event`, for pure mechanisms: every value that differs lies at or beyond its far end, where their
  likelihood ratio is largest. The ratio of the two rates bounds epsilon.
* :func:`tail_events`, for all: what is released lies further out than it ever does, or hardly ever, under the other
  history. The ratio of the rates bounds epsilon, whatever the noise. That finds noise whose middle is right and whose
  tails are not: clipped, or drawn too coarsely.

References:
    * M. Jagielski, J. Ullman, A. Oprea: Auditing Differentially Private Machine Learning. NeurIPS 2020.
    * M. Nasr et al.: Tight Auditing of Differentially Private Machine Learning. USENIX Security 2023 (through mu).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon

LowerBound = Callable[[float, float, float], float]
"""Bounds epsilon from below, given a rate of true alarms, one of false alarms, and delta."""


class Observed(NamedTuple):
    """The attacker's statistics of sampled releases under one history.

    Attributes:
        sums: Weighted sums of all values, ``(samples,)``.
        differing: The values that differ between the histories, ``(samples, values)``.
    """

    sums: Array
    differing: Array


class Alarms(NamedTuple):
    """Events that separate two histories, in the releases under attack.

    Attributes:
        true: Whether each happened under the history that makes it likelier, bool ``(samples, events)``.
        false: Whether it happened under the other history, bool ``(samples, events)``.
        lower_bound: The epsilon that its rates prove.
    """

    true: Array
    false: Array
    lower_bound: LowerBound


Pair = tuple[Observed, Observed]
"""The statistics under the history before and under the one after."""


def best_event(gaussian: bool, trained: Pair, tested: Pair, ends: tuple[Array, Array]) -> Alarms:
    """Returns the event that suits a mechanism best.

    For Gaussian noise it is that the weighted sum is nearer to its mean under the history after than to that before;
    for pure mechanisms that every value that differs lies at the far end of the difference or beyond.

    Args:
        gaussian: Whether all noise is Gaussian.
        trained: Releases in training.
        tested: Releases under attack.
        ends: The values that differ, as they are without noise, before and after, each ``(values,)``.
    """
    if gaussian:
        before, after = (seen.sums.mean() for seen in trained)
        middle, direction = (before + after) / 2, np.sign(after - before)
        false, true = (((seen.sums - middle) * direction > 0)[:, np.newaxis] for seen in tested)
        return Alarms(true, false, epsilon_from_mu)
    towards = np.sign(ends[1] - ends[0])
    false, true = (
        np.all((seen.differing - ends[1]) * towards >= 0, axis=1, keepdims=True) for seen in tested
    )
    return Alarms(true, false, epsilon_from_rates)


# Quantiles in training, 1 being the largest of all.
_FAR_OUT = (0.99, 0.999, 1.0)


def tail_events(trained: Pair, tested: Pair, ends: tuple[Array, Array]) -> Iterator[Alarms]:
    """Yields the events that what is released lies far out on the one side, and that it does on the other.

    Two statistics are watched: the weighted sum, and the one value, of those that differ, that lies furthest out by its
    own noise. Thresholds are quantiles in training under the history for which the event is a false alarm. Arguments
    are those of :func:`best_event`.
    """
    direction = float(np.sign(trained[1].sums.mean() - trained[0].sums.mean()))
    for likely, unlikely, side in ((1, 0, direction), (0, 1, -direction)):
        start, step = ends[unlikely], ends[likely] - ends[unlikely]
        # Without noise the deviation is 0, and the unit must not be.
        deviation = np.maximum(trained[unlikely].differing.std(axis=0), 1e-9 * np.abs(step))
        unit = np.sign(step) / deviation
        learned, true, false = (
            np.stack([seen.sums * side, ((seen.differing - start) * unit).max(axis=1)], axis=1)
            for seen in (trained[unlikely], tested[likely], tested[unlikely])
        )
        thresholds = np.quantile(learned, _FAR_OUT, axis=0)
        true, false = (
            (extremes[:, np.newaxis] > thresholds).reshape(len(extremes), -1) for extremes in (true, false)
        )
        yield Alarms(true, false, epsilon_from_rates)


def epsilon_from_mu(true_alarms: float, false_alarms: float, delta: float) -> float:
    """Returns the epsilon of mu >= Phi^-1(true alarms) - Phi^-1(false alarms) (Dong, Roth and Su 2022, equation 5)."""
    return float(gaussian_epsilon(delta, max(ndtri(true_alarms) - ndtri(false_alarms), 0.0)))


def epsilon_from_rates(true_alarms: float, false_alarms: float, delta: float) -> float:
    """Returns the least epsilon with true alarms <= e^epsilon false alarms + delta."""
    return float(np.log(max((true_alarms - delta) / false_alarms, 1.0)))


def rate_at_least(happened: Array, error: float) -> float:
    """Returns Clopper and Pearson's lower bound of a rate, too high with probability ``error`` at most."""
    hits, trials = int(happened.sum()), len(happened)
    return float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0


def rate_at_most(happened: Array, error: float) -> float:
    """Returns Clopper and Pearson's upper bound of a rate, too low with probability ``error`` at most."""
    hits, trials = int(happened.sum()), len(happened)
    return float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0
