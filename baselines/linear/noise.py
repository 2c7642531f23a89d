"""What noise in the statistics does to ridge regression: shifts that keep V positive definite, and bounds of the error.

Released statistics are sum [x; y][x; y]^T plus symmetric Gaussian noise, whose top left block N and last column h are
told apart here; all of it that an agent has heard has the variance s^2 on the diagonal and s^2 / 2 beside it. With the
probability that ``log_union`` stands for, ||N|| is at most

* Lambda = s (sqrt(2 d) + sqrt(2 log_union)), by Gordon's and the concentration inequality (``on_sum``), or
* Lambda = s_1 (4 sqrt(d) + 2 log_union) for each agent with its worst s_1, as printed (``per_agent``; Dubey and
  Pentland 2020, section 4.3, with s_1 = sqrt(32) m (L^2 + 1) ln(2 / delta) / epsilon for the printed sigma; the paper
  has ln(4 / delta) there).

V = G + N + c I with G = sum x x^T, so the estimate errs by V^-1 (sum x eta - (N + c I) theta* + h). How the noise's
part of that is bounded is named by ``bias``:

* ``printed``: M S sqrt(rho_max) + M kappa in the norm of V^-1, by a triangle inequality over M agents (Proposition 2);
* ``root_m``: S sqrt(rho_max) + kappa for the sum of the agents' matrices, sqrt(M) times what one agent has;
* ``euclidean``: ||(N + c I) theta* - h|| <= c S + s (sqrt(d (1 + S^2) / 2 + S^2 / 2) + sqrt((1 + 2 S^2) log_union)) in
  the Euclidean norm, which moves <x, estimate> by at most that times ||V^-1 x||. It vanishes with the data, as neither
  of the others does, and c = Lambda + ridge suffices;
* ``none``: not at all, for ``lift`` (:mod:`fedbandit_envs.baselines.linear.hearing`).
"""

from typing import Literal, NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.baselines.linear.optimism import Confidence

ShiftName = Literal["per_agent", "on_sum", "floor", "lift"]
BiasName = Literal["printed", "root_m", "euclidean", "none"]


class Regularisation(NamedTuple):
    """What to add, and what it bounds; entries of one shape, a row each.

    Attributes:
        shift: c, what is added to the diagonal.
        least: rho_min of all agents together: G + rho_min I <= V.
        most: rho_max of all agents together: V <= G + rho_max I.
        bias: Of the estimate, in the norm of V^-1.
        tilt: Of the estimate, in the Euclidean norm; one of the two is 0.
        reach: Lambda of the sum: a bound of ||N||.
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
    """Chooses the regulariser for statistics with noise; without noise it is the ridge.

    Args:
        shift: ``per_agent`` (printed: 2 Lambda for each agent heard), ``on_sum`` (2 Lambda of the sum, Lambda + ridge
            with the Euclidean bound), or ``floor``: none, see :func:`floored`.
        bias: See the module.
        sd: s, of the noise on all that was heard.
        worst_sd: s_1, the largest sd that one agent's noise can have.
        heads: Number of agents heard.
        log_union: ln(number of events / failure).
        dim: d.
        ridge: Of V where there is no noise.
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
    # With the floor these two are not known before V is.
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


class Floored(NamedTuple):
    """V with its eigenvalues lifted, for some estimators.

    Attributes:
        inverse: V^-1, ``(some, dim, dim)``.
        log_det: log det V, ``(some,)``.
        confidence: Entries ``(some,)``.
    """

    inverse: Array
    log_det: Array
    confidence: Confidence


def floored(
    gram: Array, ridge: float, parameter_bound: float, reach: Array, error: Array, added: Array
) -> Floored:
    """Lifts the eigenvalues of noisy Gram matrices to the ridge, and bounds what that does.

    Nothing is added where V is large, so the noise's part of the error is the smallest; in turn V may be smaller than
    G + ridge I, though by no more than the factor 1 + (Lambda + ridge) / lambda_min(V).

    Args:
        gram: G + N + what was added, ``(some, dim, dim)``, symmetric.
        ridge: The floor.
        parameter_bound: S.
        reach: Lambda, ``(some,)``.
        error: A bound of ||N theta* - h||, ``(some,)``.
        added: What is on the diagonal already, ``(some,)``.
    """
    values, vectors = np.linalg.eigh(gram)
    lifted = np.maximum(values, ridge)
    lift = (lifted - values).max(axis=-1)
    factor = 1 + (reach + ridge) / lifted.min(axis=-1)
    dim = gram.shape[-1]
    return Floored(
        (vectors / lifted[:, np.newaxis]) @ np.swapaxes(vectors, -1, -2),
        np.log(lifted).sum(axis=-1),
        Confidence(
            dim * (np.log(ridge) - np.log(factor)),
            np.sqrt(factor),
            np.zeros_like(factor),
            (added + lift) * parameter_bound + error,
        ),
    )
