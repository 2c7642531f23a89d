"""Exact composition beyond Gaussians: privacy loss distributions, by the dp-accounting package."""

from collections.abc import Iterator
from functools import lru_cache, reduce
from importlib.util import find_spec
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import expit

from fedbandit_envs.core.privacy import Change
from fedbandit_envs.wrappers.privacy.accounting.event import Event, Kind

# Privacy losses are rounded up to multiples of an interval. This is its default; it is narrower where losses are small.
_INTERVAL = 1e-4
_FEWEST_INTERVALS = 20_000
# Composition with more intervals needs too much time and memory; beyond this number the intervals get wider instead.
_MOST_INTERVALS = 500_000
# Mechanisms with a larger loss are not composed numerically: their epsilons are added, which is hardly less exact,
# since e^-40 is below 1e-17.
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
    """Returns the epsilon at delta of all given releases together, composed numerically.

    Rounding increases the epsilon by at most one interval of losses for each release; see this module's constants.

    Args:
        delta: The delta at which epsilon is computed, in (0, 1); 0 is allowed if ``curved`` is not empty.
        mu: The mu of all Gaussian releases together; 0 for none.
        others: For each Laplace or randomised response release: its kind (``laplace`` or ``randomised_response``), its
            epsilon for one number, and how many such numbers there are.
        curved: Events of other kinds, each with the change between neighbours and the number of such events.

    Returns:
        The epsilon; NaN if an event in ``curved`` has no privacy loss distribution, infinity if one of them is not
        private.

    Raises:
        ImportError: dp-accounting is not installed.
        ValueError: A privacy loss distribution is optimistic, or has another interval than requested.
    """
    large = sum(loss * count for _, loss, count in others if loss > _LARGEST_LOSS)
    small = [(kind, loss, count) for kind, loss, count in others if loss <= _LARGEST_LOSS]
    # The privacy loss of a Gaussian release has mean mu^2/2 and standard deviation mu. Events with curves of their own
    # are assumed to have roughly such a loss, too. `reach` is the width of the range of losses that matters.
    square = sum(count * (event.loss * change.norm) ** 2 for event, change, count in curved)
    reach = 2 * (mu**2 / 2 + 12 * mu + sum(loss * count for _, loss, count in small))
    reach += square + 24 * sqrt(square)
    # The `loss` of an event with a curve of its own may be a wrong guess, so that intervals narrower than the default
    # could be far too narrow.
    finest = _INTERVAL if curved else min(_INTERVAL, reach / _FEWEST_INTERVALS)
    interval = max(reach / _MOST_INTERVALS, finest)
    parts = list(_distributions(mu, small, interval))
    for event, change, count in curved:
        curve = _curve(event, change, interval)
        if isinstance(curve, float):
            return curve
        parts.append(curve if count == 1 else curve.self_compose(count))
    if not parts:
        return float(large)
    whole = reduce(lambda left, right: left.compose(right), parts)
    return float(large + whole.get_epsilon_for_delta(delta))


# Cached, since after each release all earlier ones are composed again.
@lru_cache(maxsize=32)
def _curve(event: Event, change: Change, interval: float) -> Any:
    """Returns an event's privacy loss distribution, from its ``loss_distribution`` or else from its ``dp_event``.

    Returns NaN if the event has neither, and infinity if its ``dp_event`` is not private.

    Raises:
        ValueError: The distribution is optimistic, or has another interval than requested.
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
        # The accountant stores that an event is not private apart from the distribution, so its epsilon is looked at.
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
            # In dp-accounting, the answer is replaced by a fair coin toss with this probability p, so it is flipped
            # with probability p/2. Here the probability of a flip is 1/(1 + e^loss) = expit(-loss).
            one = pld.from_randomized_response(
                2 * float(expit(-loss)), 2, value_discretization_interval=interval
            )
        yield one.self_compose(count)
