"""Exact composition beyond Gaussians: privacy loss distributions, by the dp-accounting package."""

from functools import reduce
from importlib.util import find_spec
from math import exp

from fedbandit_envs.wrappers.privacy.accounting.event import Kind


def available() -> bool:
    """Says whether dp-accounting is installed."""
    return find_spec("dp_accounting") is not None


def composed_epsilon(delta: float, mu: float, others: tuple[tuple[Kind, float, int], ...]) -> float:
    """Returns the epsilon of a composition, rounded up by at most about 1e-4 a release.

    Args:
        delta: In (0, 1).
        mu: Of all Gaussian releases together; 0 for none.
        others: For each of the other mechanisms its kind, its pure epsilon and how often it was used.

    Raises:
        ImportError: dp-accounting is not installed.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    parts = [] if mu == 0 else [pld.from_gaussian_mechanism(1 / mu)]
    for kind, loss, count in others:
        if kind == "laplace":
            one = pld.from_laplace_mechanism(1 / loss)
        else:
            # There a fair coin replaces the answer with this probability; here half of it flips the answer.
            one = pld.from_randomized_response(2 / (1 + exp(loss)), 2)
        parts.append(one.self_compose(count))
    return float(reduce(lambda whole, part: whole.compose(part), parts).get_epsilon_for_delta(delta))
