"""Numerical composition: the epsilon of many releases, from privacy loss distributions of the library dp-accounting."""

from collections.abc import Callable, Sequence
from functools import reduce
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Privacy losses are rounded up to multiples of an interval. This is its default; it is narrower where losses are small.
_INTERVAL = 1e-4
_FEWEST_INTERVALS = 20_000
# Composition with more intervals needs too much time and memory; beyond this number the intervals get wider instead.
_MOST_INTERVALS = 500_000
# Mechanisms with a larger loss are not composed numerically: their epsilons are added, which is hardly less exact,
# since e^-40 is below 1e-17.
_LARGEST_LOSS = 40.0

Curve = Callable[[float], "PrivacyLossDistribution | float"]
"""A function from the interval of losses to an event's privacy loss distribution; or to NaN if the event has none, and
to infinity if it is not private."""


def composed_epsilon(
    delta: float,
    mu: float,
    pure: Sequence[tuple[str, float, int]],
    curved: Sequence[tuple[Curve, float, int]],
) -> float:
    """Returns the epsilon at delta of all given releases together.

    Rounding increases it by at most one interval of losses for each release.

    Args:
        delta: The delta at which epsilon is computed, in (0, 1); 0 is allowed if ``curved`` is not empty.
        mu: The mu of all Gaussian releases together; 0 for none.
        pure: For Laplace and randomised response: the kind (``laplace`` or ``randomised_response``), the epsilon for
            one number, and how many such numbers there are.
        curved: For events of other kinds: the curve, a rough mu of one event, and how many such events there are.

    Returns:
        The epsilon; or the number that a curve is instead of a distribution.
    """
    # Imported where it is used, since that takes a second.
    from dp_accounting.pld import privacy_loss_distribution as pld

    large = sum(loss * count for _, loss, count in pure if loss > _LARGEST_LOSS)
    small = [(kind, loss, count) for kind, loss, count in pure if loss <= _LARGEST_LOSS]
    # The privacy loss of a Gaussian release has mean mu^2/2 and standard deviation mu. Events with curves of their own
    # are assumed to have roughly such a loss, too. `reach` is the width of the range of losses that matters.
    square = sum(count * rough**2 for _, rough, count in curved)
    reach = 2 * (mu**2 / 2 + 12 * mu + sum(loss * count for _, loss, count in small))
    reach += square + 24 * sqrt(square)
    # The rough mu of a curve may be a wrong guess, so that intervals narrower than the default could be far too narrow.
    finest = _INTERVAL if curved else min(_INTERVAL, reach / _FEWEST_INTERVALS)
    interval = max(reach / _MOST_INTERVALS, finest)
    rounding = {"value_discretization_interval": interval}
    parts = [pld.from_gaussian_mechanism(1 / mu, **rounding)] if mu > 0 else []
    for kind, loss, count in small:
        if kind == "laplace":
            one = pld.from_laplace_mechanism(1 / loss, **rounding)
        else:
            # In dp-accounting, the answer is replaced by a fair coin toss with this probability p, so it is flipped
            # with probability p/2. Here the probability of a flip is 1/(1 + e^loss) = expit(-loss).
            one = pld.from_randomized_response(2 * float(expit(-loss)), 2, **rounding)
        parts.append(one.self_compose(count))
    for distribution_at, _, count in curved:
        distribution = distribution_at(interval)
        if isinstance(distribution, float):
            return distribution
        parts.append(distribution if count == 1 else distribution.self_compose(count))
    if not parts:
        return float(large)
    whole = reduce(lambda left, right: left.compose(right), parts)
    return float(large + whole.get_epsilon_for_delta(delta))


def distribution_of(dp_event: Any, relation: str, interval: float) -> Any:
    """Returns the privacy loss distribution of a ``dp_accounting.DpEvent``.

    It is NaN for None and for an event without a distribution, and infinity for an event that is not private.

    Args:
        dp_event: The event.
        relation: Name of the ``dp_accounting.NeighboringRelation`` under which it is composed.
        interval: Losses are rounded to multiples of it.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(NeighboringRelation[relation], interval)
    if dp_event is None or not accountant.supports(dp_event):
        return np.nan
    # The accountant stores that an event is not private apart from the distribution, so its epsilon is looked at.
    accountant.compose(dp_event)
    return np.inf if accountant.get_epsilon(0.5) == np.inf else accountant._pld
