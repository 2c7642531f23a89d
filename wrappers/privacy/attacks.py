"""Events that are likelier under one of two neighbouring histories, and the epsilon that their rates prove.

How often they happen under each history bounds epsilon from below:

* :func:`midpoint_event`, for Gaussian noise: the matched filter (the log-likelihood ratio of what is released) with one
  threshold between the two histories. The rates of true and false alarms bound mu, and mu gives epsilon: what is
  refuted is that the releases are Gaussian with the mu that is claimed.
* :func:`far_end_event`, for pure mechanisms: every value that differs lies at or beyond its far end, where their
  likelihood ratio is largest. The ratio of the two rates bounds epsilon.
* :func:`tail_events`, for all: what is released lies further out than it ever does, or hardly ever, under the other
  history. The ratio of the rates bounds epsilon, whatever the noise. That finds noise whose middle is right and whose
  tails are not: clipped, or drawn too coarsely.

References:
    * M. Jagielski, J. Ullman, A. Oprea: Auditing Differentially Private Machine Learning. NeurIPS 2020.
    * M. Nasr et al.: Tight Auditing of Differentially Private Machine Learning. USENIX Security 2023 (through mu).
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.special import betaincinv, ndtri

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon
from fedbandit_envs.wrappers.privacy.samples import ObservedReleases

LowerBound = Callable[[float, float, float], float]
"""Bounds epsilon from below, given a rate of true alarms, one of false alarms, and delta."""

T = TypeVar("T")


class Both(NamedTuple, Generic[T]):
    """Something under each of two neighbouring histories."""

    before: T
    after: T


class AlarmEvents(NamedTuple):
    """Events that raise an attacker's alarm.

    Attributes:
        happened: Returns which of them happened to each sample, bool ``(samples, events)``.
        after: Whether they are likelier with the history that happens after, or else before.
        lower_bound: The epsilon that their rates prove.
    """

    happened: Callable[[ObservedReleases], Array]
    after: bool
    lower_bound: LowerBound


def matched_filter(released: Both[Array]) -> Array:
    """Returns the weights of the linear filter that tells two Gaussian clouds of one shape apart best.

    Args:
        released: All that was released in training, each ``(releases, samples, values)``.

    Returns:
        ``(releases, values)``.
    """
    releases, samples, values = released.before.shape
    before, after = (windows.swapaxes(0, 1).reshape(samples, -1) for windows in released)
    shift = after.mean(axis=0) - before.mean(axis=0)
    covariance = np.atleast_2d(np.cov(before, rowvar=False))
    # Where there is no noise the filter must exist all the same.
    ridge = 1e-9 * max(float(np.trace(covariance)), 1e-9) * np.eye(len(shift))
    return np.linalg.solve(covariance + ridge, shift).reshape(releases, values)


def midpoint_event(trained: Both[ObservedReleases]) -> AlarmEvents:
    """Returns the event that the weighted sum is nearer to its mean under the history after than to that before.

    Args:
        trained: ObservedReleases in training.
    """
    before, after = trained.before.sums.mean(), trained.after.sums.mean()
    middle, direction = (before + after) / 2, np.sign(after - before)
    return AlarmEvents(
        lambda seen: ((seen.sums - middle) * direction > 0)[:, np.newaxis], True, epsilon_from_mu
    )


def far_end_event(ends: Both[Array]) -> AlarmEvents:
    """Returns the event that every value that differs lies at the far end of the difference or beyond.

    Args:
        ends: The values that differ, as they are without noise, each ``(values,)``.
    """
    direction = np.sign(ends.after - ends.before)
    return AlarmEvents(
        lambda seen: np.all((seen.differing - ends.after) * direction >= 0, axis=1, keepdims=True),
        True,
        epsilon_from_rates,
    )


# Quantiles in training, 1 being the largest of all.
_FAR_OUT = (0.99, 0.999, 1.0)


def tail_events(trained: Both[ObservedReleases], ends: Both[Array]) -> list[AlarmEvents]:
    """Returns the events that what is released lies far out on the one side, and that it does on the other.

    Two things are watched: the weighted sum, and the one value, of those that differ, that lies furthest out by its own
    noise. Thresholds are quantiles in training under the history for which the event is a false alarm.

    Args:
        trained: ObservedReleases in training.
        ends: The values that differ, as they are without noise, each ``(values,)``.
    """
    direction = float(np.sign(trained.after.sums.mean() - trained.before.sums.mean()))
    return [
        _beyond(trained.before, ends.before, ends.after, direction, after=True),
        _beyond(trained.after, ends.after, ends.before, -direction, after=False),
    ]


def _beyond(
    trained: ObservedReleases, start: Array, end: Array, direction: float, after: bool
) -> AlarmEvents:
    """Returns the events that something lies far beyond the start, in the direction of the end."""
    step = end - start
    # Where there is no noise a unit must exist all the same.
    by_noise = np.sign(step) / np.maximum(trained.differing.std(axis=0), 1e-9 * np.abs(step))

    def extremes(seen: ObservedReleases) -> Array:
        furthest = ((seen.differing - start) * by_noise).max(axis=1)
        return np.stack([seen.sums * direction, furthest], axis=1)

    thresholds = np.quantile(extremes(trained), _FAR_OUT, axis=0)

    def happened(seen: ObservedReleases) -> Array:
        return (extremes(seen)[:, np.newaxis] > thresholds).reshape(len(seen.sums), -1)

    return AlarmEvents(happened, after, epsilon_from_rates)


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
