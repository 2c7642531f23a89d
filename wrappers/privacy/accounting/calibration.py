"""Functions that convert between the size of noise and the parameters of privacy, in closed form or numerically.

``mu`` is the sensitivity of a Gaussian release divided by the standard deviation of its noise; it is the parameter of
Gaussian differential privacy (mu-GDP). The noise multiplier is 1/mu.

References:
    * C. Dwork, A. Roth: The Algorithmic Foundations of Differential Privacy, 2014, Theorem A.1.
    * B. Balle, Y.-X. Wang: Improving the Gaussian Mechanism for Differential Privacy. ICML 2018, Theorems 5
      and 8.
    * J. Dong, A. Roth, W. Su: Gaussian Differential Privacy. JRSS B 2022, Corollary 1.
    * M. Bun, T. Steinke: Concentrated Differential Privacy. TCC 2016, Proposition 1.3.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from math import ceil, inf, log, log2, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy  # imports its large parts, such as stats, only when they are used
from scipy.special import erfcx, expit, log_ndtr, ndtri_exp

from fedbandit_envs.basics.checks import require_integer, require_number

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Float = np.float64 | npt.NDArray[np.float64]


def classic_noise_multiplier(epsilon: float, delta: float) -> float:
    """Returns sqrt(2 ln(1.25/delta))/epsilon (Dwork and Roth, Theorem A.1; P-FCB, eq. 10 and 11).

    This is the classic formula for the standard deviation of Gaussian noise in units of the sensitivity. It is proven
    to give (epsilon, delta) privacy for epsilon < 1 only; for larger epsilon, :func:`gaussian_delta` returns the true
    delta of such noise.

    Args:
        epsilon: Privacy of one release, > 0; infinity gives 0.
        delta: Privacy of one release, in (0, 1).
    """
    return float(np.sqrt(2 * np.log(1.25 / delta)) / epsilon)


# Smaller numbers, and the noise that they need, leave the range of floating-point numbers.
_LEAST = 1e-300


@lru_cache(maxsize=4096)  # Each episode needs the same results again.
def analytic_noise_multiplier(epsilon: float, delta: float) -> float:
    """Returns the least noise multiplier that gives (epsilon, delta) (Balle and Wang, Theorem 8).

    Args:
        epsilon: Privacy of one release, >= 1e-300; infinity gives 0.
        delta: Privacy of one release, in [1e-300, 1).

    Raises:
        ValueError: A parameter is out of its range.
    """
    require_number("delta", delta, _LEAST, 1, open_above=True)
    if epsilon == inf:
        return 0.0
    require_number("epsilon", epsilon, _LEAST, inf)
    target = np.log(delta)

    def excess(log_mu: float) -> float:
        # The difference is bounded below: at the lower end of the bracket delta may underflow to 0, and its logarithm
        # may then be NaN.
        return float(np.fmax(log_gaussian_delta(epsilon, np.exp(log_mu)) - target, -1e3))

    # delta <= Phi(mu/2 - epsilon/mu), and the two differ by a shift of the argument by a few units at most. This gives
    # an interval that contains mu.
    tail = float(ndtri_exp(target))
    highest = tail + 2.0 + np.sqrt((tail + 2.0) ** 2 + 2 * epsilon)
    low = np.log(min(epsilon, delta)) - 3.0
    high = np.log(max(highest, 1.0)) + 3.0
    multiplier = float(np.exp(-scipy.optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-14)))
    # Where epsilon is much smaller than delta, rounding of the noise changes it by much more than by itself.
    while gaussian_epsilon(delta, (1 + 1e-14) / multiplier) > epsilon * (1 + 1e-12):
        multiplier *= 1 + 1e-13
    return multiplier


def log_gaussian_delta(epsilon: Float | float, mu: Float | float) -> Float:
    """Returns the natural logarithm of the delta of mu-GDP at epsilon, also where delta itself would underflow.

    The arguments are those of :func:`gaussian_delta`.
    """
    epsilon, mu = np.broadcast_arrays(np.asarray(epsilon, np.float64), np.asarray(mu, np.float64))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = epsilon / mu - mu / 2
        far = epsilon / mu + mu / 2
        # delta = Phi(-near) - e^epsilon Phi(-far). Since phi(near) = e^epsilon phi(far), phi(near) can be factored out;
        # the other factor is a difference of Mills ratios, which never underflows. This form is used where near > 0.
        mills = erfcx(np.maximum(near, 0.0) / np.sqrt(2)) - erfcx(far / np.sqrt(2))
        tail = -np.square(near) / 2 + np.log(mills / 2)
        bulk = log_ndtr(-near) + np.log(
            -np.expm1(np.minimum(epsilon + log_ndtr(-far) - log_ndtr(-near), 0.0))
        )
        log_delta = np.where(near > 0, tail, bulk)
        if np.any(small := mu < _SMALL):
            # For the Mills ratio R, whose slope hardly changes over mu, ln((R(near) - R(near + mu)) / sqrt(2 pi)).
            at = near[..., np.newaxis] + mu[..., np.newaxis] * (1 + _NODES) / 2
            # -R'(t) = 1 - t R(t), with R(t) = sqrt(pi/2) erfcx(t/sqrt(2)).
            slope = (1 - at * np.sqrt(np.pi / 2) * erfcx(at / np.sqrt(2))) @ (_WEIGHTS / 2)
            difference = np.log(mu) + np.log(slope) - np.log(2 * np.pi) / 2
            log_delta = np.where(small, -np.square(near) / 2 + difference, log_delta)
    log_delta = np.where((mu == 0) | np.isinf(epsilon), -np.inf, log_delta)
    return np.where(np.isinf(mu) & np.isfinite(epsilon), 0.0, log_delta)[()]


# Below this mu the difference of the two Mills ratios loses digits to rounding (at 1e-16 all of them); the integral of
# their derivative is used instead.
_SMALL = 1e-4
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


def gaussian_delta(epsilon: Float | float, mu: Float | float) -> Float:
    """Returns Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu): the delta of mu-GDP at epsilon.

    Args:
        epsilon: Numbers >= 0, any shape.
        mu: Numbers >= 0 that broadcast against it.
    """
    return np.exp(log_gaussian_delta(epsilon, mu))


def gaussian_epsilon(delta: Float | float, mu: Float | float) -> Float:
    """Returns the smallest epsilon at which mu-GDP implies (epsilon, delta) differential privacy.

    Args:
        delta: Numbers in [0, 1], any shape; 0 gives infinity unless mu is 0.
        mu: Numbers >= 0 that broadcast against it.
    """
    delta, mu = np.broadcast_arrays(np.asarray(delta, np.float64), np.asarray(mu, np.float64))
    with np.errstate(divide="ignore"):
        target = np.log(delta)
    epsilon = np.where((mu == 0) | (target >= log_gaussian_delta(0.0, mu)), 0.0, np.inf)
    solve = np.isinf(epsilon) & (delta > 0) & np.isfinite(mu)
    if solve.any():
        epsilon[solve] = _solve_epsilon(target[solve], mu[solve])
    return epsilon[()]


def _solve_epsilon(target: npt.NDArray[np.float64], mu: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Solves log_gaussian_delta(epsilon, mu) = target by Newton steps kept inside a shrinking bracket."""
    low = np.zeros_like(mu)
    # delta <= Phi(mu/2 - epsilon/mu).
    high = np.maximum(mu * (mu / 2 - ndtri_exp(target)), 0.0)
    epsilon = high
    for _ in range(200):
        log_delta = log_gaussian_delta(epsilon, mu)
        below = log_delta < target
        high = np.where(below, epsilon, high)
        low = np.where(below, low, epsilon)
        with np.errstate(all="ignore"):
            # d log delta / d epsilon = -e^epsilon Phi(-far) / delta.
            step = (log_delta - target) / np.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2) - log_delta)
            moved = epsilon + step
        moved = np.where((moved >= low) & (moved <= high), moved, (low + high) / 2)
        if np.all(np.abs(moved - epsilon) <= 1e-14 * moved):
            break
        epsilon = moved
    return moved


def zcdp_epsilon(delta: float, rho: Float | float) -> Float:
    """Returns rho + 2 sqrt(rho ln(1/delta)): the epsilon of rho-zCDP (Bun and Steinke, Proposition 1.3).

    Args:
        delta: In (0, 1).
        rho: Numbers >= 0, any shape.
    """
    return rho + 2 * np.sqrt(rho * np.log(1 / delta))


# The delta at which the epsilon of a single release is stated by `equal_shares`. Exact composition does not use it.
_DELTA_OF_ONE = 1e-9


def equal_shares(epsilon: float, delta: float, releases: int, norm: float = 1.0) -> dict[str, Any]:
    """Returns arguments of ``GaussianPrivatizer`` that make all releases of an agent together (epsilon, delta) private.

    The releases are composed exactly (``exact``). They all have the same noise multiplier, so that
    mu^2 = releases (norm/multiplier)^2.

    Args:
        epsilon: Epsilon of all releases together, > 0; infinity for no noise.
        delta: Delta of all releases together, in (0, 1).
        releases: Number of releases of an agent, >= 1.
        norm: Euclidean norm of the difference of neighbours in one release, in units of sensitivity
            (:class:`~fedbandit_envs.core.privacy.Change`), > 0. Neighbours are assumed to differ in every release.

    Returns:
        The arguments by name: ``noise_multiplier``, the ``delta`` at which the epsilon of a single release is stated,
        ``releases``, and None for the other sizes of noise.

    Raises:
        TypeError: A parameter has the wrong type.
        ValueError: A parameter is out of its range, or epsilon and delta are so small that the epsilon of a single
            release is 0 in floating-point arithmetic; the error names that one.
    """
    require_integer("releases", releases, 1)
    require_number("norm", norm, 0, np.inf, open_below=True)
    multiplier = analytic_noise_multiplier(epsilon, delta) * norm * sqrt(releases)
    if multiplier > 0:
        # A slightly smaller epsilon makes slightly more noise, so that rounding cannot make the loss exceed epsilon.
        share = float(gaussian_epsilon(_DELTA_OF_ONE, 1 / multiplier)) * (1 - 1e-9)
        # Multiplied and divided to have the same rounding as in earlier versions, where privatizers were given the
        # epsilon of all releases and divided it: so the noise is equal to the bit.
        multiplier = analytic_noise_multiplier(releases * share / releases, _DELTA_OF_ONE)
    return {
        "epsilon": None,
        "epsilon_per_release": None,
        "delta": _DELTA_OF_ONE,
        "releases": releases,
        "noise_multiplier": multiplier,
    }


# Privacy losses are rounded up to multiples of an interval. This is its default; it is narrower where losses are small,
# so that the range of losses which matters has this many of them.
_INTERVAL = 1e-4
_FEWEST_INTERVALS, _FEWEST_CURVED = 200_000, 20_000
# Composition with more intervals needs too much time and memory; beyond this number the intervals get wider instead.
_MOST_INTERVALS = 500_000
# Numerical composition rounds probabilities by about a hundredth of the first of these, so that for smaller deltas only
# Renyi divergences are used. Their orders are tried up to a factor of 30 around that of Gaussian noise with the same
# spread.
_LEAST_DELTA, _FACTORS = 1e-13, np.geomspace(1 / 30, 30, 400)
# Mechanisms with a larger loss are not composed numerically: their epsilons are added, which is hardly less exact,
# since e^-40 is below 1e-17.
_LARGEST_LOSS = 40.0

Curve = Callable[[float], "PrivacyLossDistribution | float"]
"""A function from the interval of losses to an event's privacy loss distribution; or to NaN if the event has none."""


def composed_epsilon(
    delta: float,
    mu: float,
    pure: Sequence[tuple[str, float, int]],
    curved: Sequence[tuple[Curve, float, int]],
) -> float:
    """Returns the epsilon at delta of all given releases together.

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
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots

    large = sum(loss * count for _, loss, count in pure if loss > _LARGEST_LOSS)
    small = [(kind, loss, count) for kind, loss, count in pure if loss <= _LARGEST_LOSS]
    if not (mu or small or curved):
        return float(large)
    # The privacy loss of a Gaussian release has mean mu^2/2 and standard deviation mu, that of a pure one no more with
    # its epsilon in place of mu, and events with curves of their own are assumed to have roughly such a loss, too.
    # `reach` is the width of the range of losses that matters.
    square = mu**2 + sum(count * rough**2 for _, rough, count in (*small, *curved))
    reach = square + 24 * sqrt(square)
    interval = min(_INTERVAL, reach / (_FEWEST_CURVED if curved else _FEWEST_INTERVALS))
    interval = max(reach / _MOST_INTERVALS, interval)
    bound = inf
    if not curved:
        # Multiples of a wider interval are multiples of a narrower one, so that more releases never cost less.
        interval = _INTERVAL * 2.0 ** ceil(log2(interval / _INTERVAL))
        bound = _renyi_epsilon(delta, mu, small, sqrt(square))
        if delta < _LEAST_DELTA:
            return large + bound
    rounding = {"value_discretization_interval": interval}
    parts = [pld.from_gaussian_mechanism(1 / mu, **rounding)] if mu > 0 else []
    for kind, loss, count in small:
        if kind == "laplace":
            one = pld.from_laplace_mechanism(1 / loss, **rounding)
        else:
            # A flip has the probability expit(-loss). The two losses are divided among multiples of the interval.
            whole = int(loss / interval)
            near = np.unique([-whole - 1, -whole, whole, whole + 1])
            inside = np.maximum(expit(loss) - np.exp(near * interval) * expit(-loss), 0.0)
            deltas = np.maximum(-np.expm1(near * interval), inside)
            pmf = create_pmf_pessimistic_connect_dots(interval, near, deltas)
            one = pld.PrivacyLossDistribution(pmf)
        parts.append(one.self_compose(count))
    for distribution_at, _, count in curved:
        distribution = distribution_at(interval)
        if isinstance(distribution, float):
            return distribution
        parts.append(distribution if count == 1 else distribution.self_compose(count))
    whole = reduce(lambda left, right: left.compose(right), parts)
    return float(large + min(whole.get_epsilon_for_delta(delta), bound))


def _renyi_epsilon(delta: float, mu: float, pure: Sequence[tuple[str, float, int]], spread: float) -> float:
    """Returns an upper bound on the epsilon of Gaussian, Laplace and randomised releases together.

    It follows from their Renyi divergences (Canonne, Kamath, Steinke, NeurIPS 2020, Proposition 12).
    """
    above = sqrt(-2 * log(delta)) / spread * _FACTORS  # The orders less 1.
    orders = above + 1
    divergence = above * orders * mu**2 / 2
    for kind, loss, count in pure:
        # The logarithms of the weights of the largest loss and of the least one, and the least one's exponent.
        weights, step = np.array([expit(loss), expit(-loss)])[:, np.newaxis], above
        if kind == "laplace":
            weights, step = np.stack([orders, above]) / (orders + above), orders
        divergence += count * np.logaddexp(*np.log(weights) + np.stack([above, -step]) * loss)
    bounds = (divergence - np.log(delta) - np.log(orders)) / above + np.log(above / orders)
    return max(float(bounds.min()), 0.0)
