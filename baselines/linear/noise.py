"""Ridge regression on noisy Gram matrices: shifts that keep V positive definite, and bounds of the noise's error.

Released statistics are sum [x; y][x; y]^T plus symmetric Gaussian noise, for contexts x of dimension d and rewards y.
The top left d x d block of the noise is called N, its last column h. In the sum of all messages that an agent has
received the noise has variance s^2 on the diagonal and s^2 / 2 elsewhere. The parameter of rewards is theta*, of norm
at most S, eta is the noise of rewards, and M the number of agents. Except with probability exp(-``log_union``), ||N||
is at most

* Lambda = s (sqrt(2 d) + sqrt(2 log_union)), by Gordon's inequality and concentration (``on_sum``), or
* Lambda = s_1 (4 sqrt(d) + 2 log_union) for each agent, s_1 being its largest standard deviation, as printed
  (``per_agent``; Dubey and Pentland 2020, section 4.3, with s_1 = sqrt(32) m (L^2 + 1) ln(2 / delta) / epsilon for the
  printed sigma, where the paper has ln(4 / delta)).

The estimate uses V = G + N + c I with G = sum x x^T and a shift c; its error is V^-1 (sum x eta - (N + c I) theta* +
h). The parameter ``bias`` names the bound of -(N + c I) theta* + h, the part of the error from noise and shift. Here
rho_min and rho_max are such that G + rho_min I <= V <= G + rho_max I, and kappa bounds h in the norm of V^-1.

* ``printed``: M S sqrt(rho_max) + M kappa in the norm of V^-1, by a triangle inequality over M agents (Proposition 2);
* ``root_m``: S sqrt(rho_max) + kappa for the sum of all agents' matrices, which is sqrt(M) times the value for one;
* ``euclidean``: ||(N + c I) theta* - h|| <= c S + s (sqrt(d (1 + S^2) / 2 + S^2 / 2) + sqrt((1 + 2 S^2) log_union)) in
  the Euclidean norm, which moves <x, estimate> by at most that times ||V^-1 x||. Unlike the other two it vanishes as
  data accumulate, and c = Lambda + ridge suffices;
* ``none``: no bound; used with :func:`lift_eigenvalues`.
"""

from typing import Literal, NamedTuple

import numpy as np

from fedbandit_envs.baselines.linear.regressions import Confidence
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.linear.ridge import lies_below

ShiftName = Literal["per_agent", "on_sum", "floor", "lift"]
BiasName = Literal["printed", "root_m", "euclidean", "none"]


class Regularisation(NamedTuple):
    """The shift of V's diagonal and the error bounds that follow from it, in arrays ``(replicas, agents)``.

    V = G + N + c I is an agent's matrix, with the Gram matrix G, the noise N and the shift c.

    Attributes:
        shift: c, the multiple of I that is added.
        least: rho_min for the sum over all agents: G + rho_min I <= V.
        most: rho_max for the sum over all agents: V <= G + rho_max I.
        bias: Bound of the error from noise and shift in the norm of V^-1; 0 if ``tilt`` is used.
        tilt: Bound of the error from noise and shift in the Euclidean norm; 0 if ``bias`` is used.
        reach: Lambda, a bound of ||N|| for the noise on the sum over all agents.
        error: Bound of ||N theta* - h||, where h is the noise of the moment.
    """

    shift: Array
    least: Array
    most: Array
    bias: Array
    tilt: Array
    reach: Array
    error: Array


def regularise(
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

    The module's docstring defines the bounds.

    Args:
        shift: ``"per_agent"`` (2 Lambda for each sender, as printed), ``"on_sum"`` (2 Lambda of the sum, or Lambda +
            ridge with ``bias="euclidean"``), or ``"floor"`` (no shift, for :func:`floor_eigenvalues`).
        bias: Name of the bound of the error from noise and shift.
        sd: s, the standard deviation of the noise on the sum of all received messages, ``(replicas, agents)``.
        worst_sd: s_1, the largest standard deviation that one agent's noise can have.
        heads: Number of agents whose statistics V contains, ``(replicas, agents)``.
        log_union: ln(n / p), where the bounds of n cases (releases and senders) together fail with probability at most
            p; ``(replicas, agents)``.
        dim: Dimension d of contexts.
        ridge: Shift of V where there is no noise.
        parameter_bound: S, an upper bound of ||theta*||.
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
    # With shift="floor" these values are only preliminary: the right ones depend on V, and floor_eigenvalues computes
    # them.
    least, most = np.maximum(added - reach, ridge if shift == "floor" else 0.0), added + reach
    kappa = column * (np.sqrt(dim) + tail) / np.sqrt(2 * least)
    root = parameter_bound * np.sqrt(most)
    in_norm = np.sqrt(heads) * root + heads * kappa if bias == "printed" else root + kappa
    euclidean = noisy & (bias == "euclidean")
    bound = np.where(euclidean, 0.0, np.where(noisy, in_norm, parameter_bound * np.sqrt(ridge)))
    tilt = np.where(euclidean, added * parameter_bound + error, 0.0)
    return Regularisation(added, least, most, bound, tilt, reach, error)


def floor_eigenvalues(
    gram: Array, ridge: float, parameter_bound: float, reach: Array, error: Array, added: Array
) -> tuple[Array, Array, Confidence]:
    """Returns inverses of noisy Gram matrices whose eigenvalues were lifted to the ridge, and bounds of the error.

    Directions with large eigenvalues get no shift, so that the error from noise and shift is smallest there. On the
    other hand V may be smaller than G + ridge I, though by no more than the factor 1 + (Lambda + ridge) /
    lambda_min(V), where G is the exact Gram matrix and Lambda a bound of the norm of the noise N.

    Args:
        gram: G + N + ``added`` I, symmetric, ``(some, dim, dim)``, for any number of estimators.
        ridge: The least eigenvalue after lifting.
        parameter_bound: S, an upper bound of ||theta*||.
        reach: Lambda, an upper bound of ||N||, ``(some,)``.
        error: An upper bound of ||N theta* - h||, where h is the noise in the sum of x r, ``(some,)``.
        added: Multiple of I that ``gram`` contains already, ``(some,)``.

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
    """Returns received sums of [x; y][x; y]^T in which small eigenvalues of the noisy Gram matrix were lifted.

    The Gram matrix of a sum is G + N with G = sum x x^T and symmetric Gaussian noise N of variance nu on the diagonal
    and nu / 2 elsewhere. The eigenvalues of ridge I + G + N are lifted to at least 2 s sqrt(dim), where s^2 = nu / 2;
    then ridge I is subtracted again. With this method the package's Priv-FairX-LinUCB has the regret that the thesis
    reports. No bound of the error is known.

    Args:
        statistic: Sum of all received messages, ``(some, ..., dim + 1, dim + 1)``.
        variance: nu, ``(some,)``.
        ridge: Ridge, > 0, that the policy adds to the result.

    Returns:
        The lifted sums, symmetric, of the same shape.
    """
    symmetric, dim = 0.5 * (statistic + np.swapaxes(statistic, -1, -2)), statistic.shape[-1] - 1
    matrices = symmetric.reshape(-1, dim + 1, dim + 1)
    least = np.repeat(2.0 * np.sqrt(0.5 * dim * variance), len(matrices) // max(len(variance), 1))
    # With much data no eigenvalue lies below the bound. A Cholesky factorisation finds this out faster than an
    # eigenvalue decomposition, which is left to the matrices that need it.
    low = lies_below(matrices, least - ridge)
    values, vectors = np.linalg.eigh(matrices[low, :dim, :dim])
    values = np.maximum(values, (least[low] - ridge)[:, np.newaxis])
    matrices[low, :dim, :dim] = (vectors * values[:, np.newaxis]) @ np.swapaxes(vectors, -1, -2)
    return symmetric
