"""Attacks that tell two neighbouring histories apart by an agent's noisy releases, and the epsilon that they prove.

An attack raises an alarm when the releases look like those of one of the two histories. The alarm is true under that
history and false under the other. The rates of true and of false alarms bound epsilon from below:

* :func:`best_event`, for Gaussian noise: a matched filter (the log-likelihood ratio of the releases) with a
  threshold in the middle between the two histories. The rates bound mu of Gaussian differential privacy, and mu gives
  epsilon. This can refute that the releases are Gaussian with the claimed mu.
* :func:`best_event`, for mechanisms of pure differential privacy: the alarm is that every number that differs between
  the histories lies at its true value (without noise) under the second history or beyond it, where the likelihood ratio
  is largest. The ratio of the two rates bounds epsilon.
* :func:`tail_events`, for all mechanisms: the alarm is that releases lie further out than they ever, or hardly ever, do
  under the other history. The ratio of the rates bounds epsilon for any kind of noise. This finds noise that is right
  in the middle and wrong in the tails, because it was clipped or drawn too coarsely.

References:
    * M. Jagielski, J. Ullman, A. Oprea: Auditing Differentially Private Machine Learning. NeurIPS 2020.
    * M. Nasr et al.: Tight Auditing of Differentially Private Machine Learning. USENIX Security 2023 (through mu).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon

LowerBound = Callable[[float, float, float], float]
"""A function that returns a lower bound on epsilon, given the rates of true and of false alarms, and delta."""


class Observed(NamedTuple):
    """The attacker's summary of sampled releases under one history.

    Attributes:
        sums: Weighted sum of all released numbers of each sample (the matched filter), ``(samples,)``.
        differing: The released numbers whose true values differ between the histories, ``(samples, values)``.
    """

    sums: Array
    differing: Array


class Alarms(NamedTuple):
    """Alarms of one or several attacks in the samples of both histories.

    Attributes:
        true: Whether each alarm is raised under the history that makes it likelier, bool ``(samples, events)``.
        false: Whether it is raised under the other history, bool ``(samples, events)``.
        lower_bound: The function that returns the epsilon that the rates of an alarm prove.
    """

    true: Array
    false: Array
    lower_bound: LowerBound


Pair = tuple[Observed, Observed]
"""The attacker's summaries of samples of the first history (``before``) and of the second one (``after``)."""


def best_event(gaussian: bool, trained: Pair, tested: Pair, ends: tuple[Array, Array]) -> Alarms:
    """Returns the alarm that distinguishes the two histories best, given the kind of noise.

    For Gaussian noise the alarm is that the weighted sum of all released numbers is nearer to its mean under the second
    history than to its mean under the first. For mechanisms of pure differential privacy it is that every number that
    differs lies at its true value under the second history or beyond it.

    Args:
        gaussian: Whether all noise is Gaussian.
        trained: Samples of both histories from which the attacker estimates the two means.
        tested: Other samples of both histories, to which the alarm is applied.
        ends: The numbers that differ, without noise: under the first history and under the second, each ``(values,)``.

    Returns:
        Whether the alarm is raised under the second history (``true``) and under the first (``false``), each bool
        ``(samples, 1)``, and the function that turns the two rates into a lower bound on epsilon.
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


FAR_OUT = (0.99, 0.999, 1.0)
"""The quantiles of training samples that are thresholds by default."""


def tail_events(
    trained: Pair, tested: Pair, ends: tuple[Array, Array], quantiles: Sequence[float] = FAR_OUT
) -> Iterator[Alarms]:
    """Yields alarms that are raised when a sample lies further out than nearly all training samples of one history.

    Two numbers of each sample are compared with thresholds: the weighted sum of all released numbers, and the largest
    deviation of a single one from its true value, in units of its own noise. Thresholds are ``quantiles`` of the same
    numbers in training samples of the history under which the alarm is false; the quantile 1 is the largest of them.

    Args:
        trained: Samples of both histories, from which thresholds follow; see :func:`best_event`.
        tested: Other samples of both histories, to which the alarms are applied.
        ends: The numbers that differ, without noise, under the first and under the second history, each ``(values,)``.
        quantiles: The quantiles, in (0, 1].

    Yields:
        First the alarms by values far out on the side of the second history, true under it and false under the first;
        then those on the side of the first history. Each has ``(samples, 2 len(quantiles))`` entries for each history.
    """
    direction = float(np.sign(trained[1].sums.mean() - trained[0].sums.mean()))
    for likely, unlikely, side in ((1, 0, direction), (0, 1, -direction)):
        start, step = ends[unlikely], ends[likely] - ends[unlikely]
        # Without noise the standard deviation is 0, which is replaced by a tiny number to avoid a division by 0.
        deviation = np.maximum(trained[unlikely].differing.std(axis=0), 1e-9 * np.abs(step))
        unit = np.sign(step) / deviation
        learned, true, false = (
            np.stack([seen.sums * side, ((seen.differing - start) * unit).max(axis=1)], axis=1)
            for seen in (trained[unlikely], tested[likely], tested[unlikely])
        )
        thresholds = np.quantile(learned, quantiles, axis=0)
        true, false = (
            (extremes[:, np.newaxis] > thresholds).reshape(len(extremes), -1) for extremes in (true, false)
        )
        yield Alarms(true, false, epsilon_from_rates)


def epsilon_from_mu(true_alarms: float, false_alarms: float, delta: float) -> float:
    """Returns the epsilon at ``delta`` of Gaussian differential privacy, for the mu that the two rates prove.

    mu is at least Phi^-1(true alarms) - Phi^-1(false alarms) (Dong, Roth and Su 2022, equation 5).
    """
    return float(gaussian_epsilon(delta, max(ndtri(true_alarms) - ndtri(false_alarms), 0.0)))


def epsilon_from_rates(true_alarms: float, false_alarms: float, delta: float) -> float:
    """Returns the smallest epsilon >= 0 with (true alarms) <= e^epsilon (false alarms) + delta."""
    return float(np.log(max((true_alarms - delta) / false_alarms, 1.0)))


def rate_at_least(happened: Array, error: float) -> float:
    """Returns Clopper and Pearson's lower bound on the rate of True entries; ``error`` is its failure probability."""
    hits, trials = int(happened.sum()), len(happened)
    return float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0


def rate_at_most(happened: Array, error: float) -> float:
    """Returns Clopper and Pearson's upper bound on the rate of True entries; ``error`` is its failure probability."""
    hits, trials = int(happened.sum()), len(happened)
    return float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0


def bounded_rates(alarms: list[Alarms], error: float) -> list[tuple[float, float, LowerBound]]:
    """Returns bounds on the rates of alarms, which all hold with probability 1 - ``error``.

    Returns:
        For each alarm a lower bound on the rate of true alarms, an upper bound on the rate of false ones, and the
        function that bounds epsilon by these two.
    """
    # For each kind of alarm two bounds may fail: the one on the rate of true and the one on the rate of false alarms.
    share = error / 2 / sum(alarm.true.shape[1] for alarm in alarms)
    return [
        (rate_at_least(t, share), rate_at_most(f, share), alarm.lower_bound)
        for alarm in alarms
        for t, f in zip(alarm.true.T, alarm.false.T, strict=True)
    ]


def observe(episodes: Iterable[Iterable[Array]], weights: Array, differs: Array) -> Observed:
    """Returns the attacker's summary of sampled releases.

    Args:
        episodes: For each episode, the releases ``(agents, values)`` of each window.
        weights: The matched filter: the weight of each released number in the sum, ``(releases, values)``.
        differs: Whether each number differs between the histories, bool ``(releases, values)``.
    """
    sums, differing = [], []
    for windows in episodes:
        parts = [(values @ w, values[:, d]) for values, w, d in zip(windows, weights, differs, strict=True)]
        sums.append(sum(part[0] for part in parts))
        differing.append(np.concatenate([part[1] for part in parts], axis=1))
    return Observed(np.concatenate(sums), np.concatenate(differing))


def matched_filter(before: Array, after: Array) -> Array:
    """Returns the weights of the linear filter that best separates two Gaussian distributions, ``(releases, values)``.

    Args:
        before: Training samples of the releases under the first history, ``(releases, samples, values)``.
        after: Training samples of the releases under the second history, same shape.
    """
    releases, samples, values = before.shape
    before, after = (windows.swapaxes(0, 1).reshape(samples, -1) for windows in (before, after))
    shift = after.mean(axis=0) - before.mean(axis=0)
    covariance = np.atleast_2d(np.cov(before, rowvar=False))
    # Without noise the covariance matrix is singular; a small multiple of the identity makes it invertible.
    ridge = 1e-9 * max(float(np.trace(covariance)), 1e-9) * np.eye(len(shift))
    return np.linalg.solve(covariance + ridge, shift).reshape(releases, values)
