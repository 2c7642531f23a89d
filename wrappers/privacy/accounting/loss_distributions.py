"""Exact composition beyond Gaussians: privacy loss distributions, by the dp-accounting package."""

from collections.abc import Iterator
from functools import lru_cache, reduce
from importlib.util import find_spec
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import expit

from fedbandit_envs.core.sensitivity import Change
from fedbandit_envs.wrappers.privacy.accounting.event import Event, Kind

# Losses are rounded up to multiples of an interval: as fine as this, or finer where they are small.
_INTERVAL = 1e-4
_FEWEST_INTERVALS = 20_000
# More take long and much memory; the intervals get wider instead.
_MOST_INTERVALS = 500_000
# A larger loss leaves less than 1e-17 of the mass to numerical composition, which has nothing to gain there.
_LARGEST_LOSS = 40.0


def available() -> bool:
    """Returns whether dp-accounting is installed."""
    return find_spec("dp_accounting") is not None


def composed_epsilon(
    delta: float,
    mu: float,
    others: tuple[tuple[Kind, float, int], ...],
    curved: tuple[tuple[Event, Change, int], ...] = (),
) -> float:
    """Returns the epsilon of a composition, rounded up by at most an interval a release; see this module's constants.

    Args:
        delta: In (0, 1); 0 as well where events give curves.
        mu: Of all Gaussian releases together; 0 for none.
        others: For each of the other mechanisms its kind, ``laplace`` or ``randomised_response``, its pure epsilon and
            how often it was used.
        curved: Events that give curves of their own, by how much neighbours differ in each, and how often it happened.

    Returns:
        NaN if one of ``curved`` gives no curve, infinity if one of them is not private at all.

    Raises:
        ImportError: dp-accounting is not installed.
        ValueError: A curve is optimistic, or not of the interval asked for.
    """
    large = sum(loss * count for _, loss, count in others if loss > _LARGEST_LOSS)
    small = [(kind, loss, count) for kind, loss, count in others if loss <= _LARGEST_LOSS]
    # A Gaussian's loss has mean mu^2/2 and standard deviation mu. So, roughly, have the losses of what gives a curve.
    square = sum(count * (event.loss * change.norm) ** 2 for event, change, count in curved)
    reach = 2 * (mu**2 / 2 + 12 * mu + sum(loss * count for _, loss, count in small))
    reach += square + 24 * sqrt(square)
    # Whoever gives a curve may have given no loss: then finer intervals could be too fine.
    finest = _INTERVAL if curved else min(_INTERVAL, reach / _FEWEST_INTERVALS)
    interval = max(reach / _MOST_INTERVALS, finest)
    parts = list(_distributions(mu, small, interval))
    for event, change, count in curved:
        curve = _curve(event, change, interval)
        if isinstance(curve, float):
            return curve
        parts.append(curve.self_compose(count))
    if not parts:
        return float(large)
    whole = reduce(lambda left, right: left.compose(right), parts)
    return float(large + whole.get_epsilon_for_delta(delta))


# The same releases are composed again after each of them.
@lru_cache(maxsize=32)
def _curve(event: Event, change: Change, interval: float) -> Any:
    """Returns the privacy loss distribution that an event gives, by itself or as dp-accounting's event.

    NaN stands for none, infinity for the loss of a dp-accounting event that is not private at all.

    Raises:
        ValueError: It is optimistic, or of another interval.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.pld import privacy_loss_distribution as pld

    curve = event.loss_distribution(change, interval)
    if curve is None:
        accountant, dp_event = (
            PLDAccountant(NeighboringRelation[event.relation], interval),
            event.dp_event(change),
        )
        if dp_event is None or not accountant.supports(dp_event):
            return np.nan
        # The accountant keeps apart from its distribution that something was not private at all.
        accountant.compose(dp_event)
        return np.inf if accountant.get_epsilon(0.5) == np.inf else accountant._pld
    try:
        curve.compose(pld.identity(interval))
    except ValueError as error:
        raise ValueError(
            f"the privacy loss distribution of {event!r} at the interval {interval!r} is not what is asked for, a "
            f"pessimistic one of this interval: {error}"
        ) from error
    return curve


def _distributions(mu: float, others: list[tuple[Kind, float, int]], interval: float) -> Iterator[Any]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    if mu > 0:
        yield pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=interval)
    for kind, loss, count in others:
        if kind == "laplace":
            one = pld.from_laplace_mechanism(1 / loss, value_discretization_interval=interval)
        else:
            # There a fair coin replaces the answer with this probability; here half of it flips the answer.
            one = pld.from_randomized_response(
                2 * float(expit(-loss)), 2, value_discretization_interval=interval
            )
        yield one.self_compose(count)
