"""Ridge regression on noisy Gram matrices: shifts that keep V positive definite, and bounds of the noise's error.

Released statistics are sum [x; y][x; y]^T plus symmetric Gaussian noise. The noise's top left block is called N, its
last column h; the sum of all that an agent has received has noise of variance s^2 on the diagonal and s^2 / 2
elsewhere. With the probability that ``log_union`` stands for, ||N|| is at most

* Lambda = s (sqrt(2 d) + sqrt(2 log_union)), by Gordon's inequality and concentration (``on_sum``), or
* Lambda = s_1 (4 sqrt(d) + 2 log_union) for each agent, s_1 being its largest standard deviation, as printed
  (``per_agent``; Dubey and Pentland 2020, section 4.3, with s_1 = sqrt(32) m (L^2 + 1) ln(2 / delta) / epsilon for the
  printed sigma, where the paper has ln(4 / delta)).

V = G + N + c I with G = sum x x^T, so the estimate errs by V^-1 (sum x eta - (N + c I) theta* + h). ``bias`` names the
bound of the noise's part of that:

* ``printed``: M S sqrt(rho_max) + M kappa in the norm of V^-1, by a triangle inequality over M agents (Proposition 2);
* ``root_m``: S sqrt(rho_max) + kappa for the sum of the agents' matrices, sqrt(M) times what one agent has;
* ``euclidean``: ||(N + c I) theta* - h|| <= c S + s (sqrt(d (1 + S^2) / 2 + S^2 / 2) + sqrt((1 + 2 S^2) log_union)) in
  the Euclidean norm, which moves <x, estimate> by at most that times ||V^-1 x||. Unlike the other two it vanishes as
  data accumulate, and c = Lambda + ridge suffices;
* ``none``: no bound, for :func:`lift_eigenvalues`.
"""

from typing import Literal, NamedTuple

import numpy as np

from fedbandit_envs.baselines.linear.optimism import Confidence
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.linear.ridge import lies_below

ShiftName = Literal["per_agent", "on_sum", "floor", "lift"]
BiasName = Literal["printed", "root_m", "euclidean", "none"]


class Regularisation(NamedTuple):
    """A shift of V's diagonal and the error bounds that follow from it; one entry a row in each array.

    Attributes:
        shift: c, what is added to the diagonal.
        least: rho_min of all agents together: G + rho_min I <= V.
        most: rho_max of all agents together: V <= G + rho_max I.
        bias: Bound of the estimate's bias in the norm of V^-1.
        tilt: Bound of the estimate's bias in the Euclidean norm; one of the two is 0.
        reach: Lambda of the sum, a bound of ||N||.
        error: A bound of ||N theta* - h||.
    """

    shift: Array
    least: Array
    most: Array
    bias: Array
    tilt: Array
    reach: Array
    error: Array


def regularise(
    *,
    shift: ShiftName,
    bias: BiasName,
    sd: Array,
    worst_sd: float,
    heads: Array,
    log_union: Array,
    dim: int,
    ridge: float,
    parameter_bound: float,
) -> Regularisation:
    """Returns the shift and the error bounds for noisy statistics; without noise the shift is the ridge.

    Args:
        shift: ``"per_agent"`` (printed: 2 Lambda for each sender), ``"on_sum"`` (2 Lambda of the sum; Lambda + ridge
            with the Euclidean bound), or ``"floor"``: none, see :func:`floor_eigenvalues`.
        bias: Which bound; see the module.
        sd: s, standard deviation of the noise on all that was received.
        worst_sd: s_1, the largest standard deviation that one agent's noise can have.
        heads: Number of agents whose statistics V holds.
        log_union: ln(number of events / failure).
        dim: d.
        ridge: Shift of V where there is no noise.
        parameter_bound: S.
    """
    tail = np.sqrt(2 * log_union)
    if shift == "per_agent":
        reach = heads * worst_sd * (4 * np.sqrt(dim) + 2 * log_union)
        column = np.sqrt(heads) * worst_sd
    else:
        reach = sd * (np.sqrt(2 * dim) + tail)
        column = sd
    noisy = reach > 0
    square = parameter_bound**2
    error = sd * (np.sqrt(dim * (1 + square) / 2 + square / 2) + np.sqrt((1 + 2 * square) / 2) * tail)
    if shift == "floor":
        added = np.where(noisy, 0.0, ridge)
    elif bias == "euclidean" and shift == "on_sum":
        added = reach + ridge
    else:
        added = np.maximum(2 * reach, ridge)
    # With the floor these are preliminary: they depend on V, see floor_eigenvalues.
    least, most = np.maximum(added - reach, ridge if shift == "floor" else 0.0), added + reach
    kappa = column * (np.sqrt(dim) + tail) / np.sqrt(2 * least)
    root = parameter_bound * np.sqrt(most)
    in_norm = np.sqrt(heads) * root + heads * kappa if bias == "printed" else root + kappa
    euclidean = noisy & (bias == "euclidean")
    return Regularisation(
        shift=added,
        least=least,
        most=most,
        bias=np.where(euclidean, 0.0, np.where(noisy, in_norm, parameter_bound * np.sqrt(ridge))),
        tilt=np.where(euclidean, added * parameter_bound + error, 0.0),
        reach=reach,
        error=error,
    )


def floor_eigenvalues(
    gram: Array, ridge: float, parameter_bound: float, reach: Array, error: Array, added: Array
) -> tuple[Array, Array, Confidence]:
    """Lifts the eigenvalues of noisy Gram matrices to the ridge, and bounds the error that this makes.

    Nothing is added where V is large, so that the noise's part of the error is smallest; in turn V may be smaller than
    G + ridge I, by no more than the factor 1 + (Lambda + ridge) / lambda_min(V).

    Args:
        gram: G + N + what was added, ``(some, dim, dim)``, symmetric.
        ridge: The floor.
        parameter_bound: S.
        reach: Lambda, ``(some,)``.
        error: A bound of ||N theta* - h||, ``(some,)``.
        added: What is on the diagonal already, ``(some,)``.

    Returns:
        V^-1, ``(some, dim, dim)``; log det V, ``(some,)``; bounds of the estimates' errors, entries ``(some,)``.
    """
    values, vectors = np.linalg.eigh(gram)
    lifted = np.maximum(values, ridge)
    lift = (lifted - values).max(axis=-1)
    factor = 1 + (reach + ridge) / lifted.min(axis=-1)
    confidence = Confidence(
        gram.shape[-1] * (np.log(ridge) - np.log(factor)),
        np.sqrt(factor),
        np.zeros_like(factor),
        (added + lift) * parameter_bound + error,
    )
    inverse = (vectors / lifted[:, np.newaxis]) @ np.swapaxes(vectors, -1, -2)
    return inverse, np.log(lifted).sum(axis=-1), confidence


def lift_eigenvalues(statistic: Array, variance: Array, ridge: float) -> Array:
    """Lifts the eigenvalues of ridge I + G + N to at least 2 s sqrt(dim), s^2 = nu / 2, and subtracts ridge I again.

    G = sum x x^T, and N is symmetric Gaussian noise of variance nu on the diagonal and nu / 2 elsewhere. With this the
    package's Priv-FairX-LinUCB has the regret that the thesis reports. No bound of the error is known.

    Args:
        statistic: Sum of all that was received, ``(some, ..., dim + 1, dim + 1)``.
        variance: nu, ``(some,)``.
        ridge: > 0.

    Returns:
        The lifted sums, symmetric, of the same shape.
    """
    symmetric, dim = 0.5 * (statistic + np.swapaxes(statistic, -1, -2)), statistic.shape[-1] - 1
    matrices = symmetric.reshape(-1, dim + 1, dim + 1)
    least = np.repeat(2.0 * np.sqrt(0.5 * dim * variance), len(matrices) // max(len(variance), 1))
    # With much data no eigenvalue is below; a Cholesky factorisation shows that faster than the eigenvalues.
    low = lies_below(matrices, least - ridge)
    values, vectors = np.linalg.eigh(matrices[low, :dim, :dim])
    values = np.maximum(values, (least[low] - ridge)[:, np.newaxis])
    matrices[low, :dim, :dim] = (vectors * values[:, np.newaxis]) @ np.swapaxes(vectors, -1, -2)
    return symmetric
