"""Exact composition beyond Gaussians: privacy loss distributions, by the dp-accounting package."""

from collections.abc import Iterator
from functools import reduce
from importlib.util import find_spec
from typing import Any

from scipy.special import expit

from fedbandit_envs.wrappers.privacy.accounting.event import Kind

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


def composed_epsilon(delta: float, mu: float, others: tuple[tuple[Kind, float, int], ...]) -> float:
    """Returns the epsilon of a composition, rounded up by at most an interval a release; see this module's constants.

    Args:
        delta: In (0, 1).
        mu: Of all Gaussian releases together; 0 for none.
        others: For each of the other mechanisms its kind, ``laplace`` or ``randomised_response``, its pure epsilon and
            how often it was used.

    Raises:
        ImportError: dp-accounting is not installed.
    """
    large = sum(loss * count for _, loss, count in others if loss > _LARGEST_LOSS)
    small = [(kind, loss, count) for kind, loss, count in others if loss <= _LARGEST_LOSS]
    # A Gaussian's loss has mean mu^2/2 and standard deviation mu.
    reach = 2 * (mu**2 / 2 + 12 * mu + sum(loss * count for _, loss, count in small))
    interval = max(reach / _MOST_INTERVALS, min(_INTERVAL, reach / _FEWEST_INTERVALS))
    parts = list(_distributions(mu, small, interval))
    if not parts:
        return float(large)
    whole = reduce(lambda left, right: left.compose(right), parts)
    return float(large + whole.get_epsilon_for_delta(delta))


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
