"""Ridge regressions on own and received sums of [x; y][x; y]^T over contexts x and rewards y (compiled).

They give upper confidence bounds, the arm with the largest bound, and two conditions for sending a message: the
determinant of an agent's exact Gram matrix has grown enough.

**Noisy Gram matrices.** Shifts keep V positive definite, and there are bounds of the noise's error. Released statistics
are sum [x; y][x; y]^T plus symmetric Gaussian noise, for contexts x of dimension d and rewards y.
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

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel, kernel
from fedbandit_envs.linear.ridge import (
    estimate,
    factorise,
    invert,
    largest,
    lies_below,
    rank_one,
    upper_bounds,
)
from fedbandit_envs.linear.rounds import add_square


class Confidence(NamedTuple):
    """Four numbers that bound the error of a ridge estimate V^-1 b, for each estimator of each agent.

    With probability 1 - failure, for all x and rounds at once, |<x, estimate - theta*>| is at most ``(inflation
    noise_sd sqrt(2 ln(1/failure) + log det V - log_floor) + bias) ||x||_{V^-1} + tilt ||V^-1 x||``. Here V is the
    regularised Gram matrix and theta* the true parameter. All arrays are ``(replicas, agents, estimators)``.

    Attributes:
        log_floor: log det A of a matrix A such that V >= A + sum x x^T, for instance of the ridge.
        inflation: Factor >= 1 of the first term; above 1 where V is slightly smaller than A + sum x x^T.
        bias: Bound of the error from regularisation and noise, in the norm of V^-1; 0 if ``tilt`` is used.
        tilt: Bound of the error from regularisation and noise, in the Euclidean norm; 0 if ``bias`` is used.
    """

    log_floor: Array
    inflation: Array
    bias: Array
    tilt: Array


@kernel(inline="always")
def reach(r, j, e, log_det, log_floor, inflation, bias, noise_sd, log_failure):
    """Returns the radius, in the norm of V, of a confidence ellipsoid around the ridge estimate of one estimator.

    It is ``inflation noise_sd sqrt(2 log_failure + log_det - log_floor) + bias``; the term with ``tilt`` of
    :class:`Confidence` is not included.
    """
    # log_det is at least log_floor, except for rounding errors.
    growth = log_det[r, j, e] - log_floor[r, j, e]
    root = np.sqrt(2.0 * log_failure + (0.0 if growth < 0.0 else growth))
    return inflation[r, j, e] * noise_sd * root + bias[r, j, e]


@inner_kernel
def _bound(
    r, j, e, contexts, inverse, moment, log_det, log_floor, inflation, bias, tilt, log_failure, noise_sd, scale,
    constant, width, parameter, bound,
):  # fmt: skip
    """Writes the upper confidence bounds of one agent's arms by its estimator e; see :func:`choose`."""
    radius = reach(r, j, e, log_det, log_floor, inflation, bias, noise_sd, log_failure)
    estimate(inverse[r, j, e], moment[r, j, e], parameter[r, j])
    upper_bounds(
        contexts[r, j], inverse[r, j, e], parameter[r, j],
        scale * radius if constant < 0.0 else constant, scale * tilt[r, j, e], width, bound,
    )  # fmt: skip


@kernel
def choose(active, round_, contexts, estimators, caps, noise_sd, scale, constant, scratch, parameter, arm):
    """Writes the arm with the largest upper confidence bound, for each active agent.

    The bound is that of one estimator of each agent or, with caps, the smaller one of its bound and that of a second
    estimator, the cap. Both are computed while the agent's contexts are in the processor's cache.

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others keep their last arm.
        round_: Number of rounds played, ``(replicas, agents, 1)``; modulo the number of estimators it is the index of
            the estimator that is used.
        contexts: Contexts x of all arms, ``(replicas, agents, dim, arms)``.
        estimators: A tuple: V^-1, ``(replicas, agents, estimators, dim, dim)``; moments b = sum y x of rewards y,
            ``(replicas, agents, estimators, dim)``; log det V, ``(replicas, agents, estimators)``; the four arrays of a
            :class:`Confidence`; and ln(1/failure), for bounds that fail with probability ``failure``.
        caps: The same of the second estimators, of which each agent has one; None without caps, for which Numba
            compiles a smaller kernel.
        noise_sd: Sub-Gaussian constant of rewards.
        scale: Factor of the radius and of the tilt.
        constant: A radius that replaces the scaled one, also of caps, unless it is negative.
        scratch: Scratch array, ``(5, arms)``.
        parameter: Receives the estimates V^-1 b of agents that act, ``(replicas, agents, dim)``.
        arm: Receives the arms, ``(replicas, agents)``.
    """
    width, bound, cap = scratch[:3], scratch[3], scratch[4]
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j, 0]:
                continue
            if caps is not None:
                _bound(r, j, 0, contexts, *caps, noise_sd, scale, constant, width, parameter, cap)
            e = round_[r, j, 0] % estimators[1].shape[2]
            _bound(r, j, e, contexts, *estimators, noise_sd, scale, constant, width, parameter, bound)
            if caps is not None:
                for k in range(contexts.shape[3]):
                    bound[k] = cap[k] if cap[k] < bound[k] else bound[k]
            arm[r, j] = largest(bound)


@kernel
def keep(round_, pulled, reward, own):
    """Adds [x; y][x; y]^T of the last round, with context x and reward y, to each agent's own sum.

    Args:
        round_: Number t of rounds played, ``(replicas, agents, 1)``; where it is 0 nothing is added. With several
            estimators the round is added to the sum of estimator (t - 1) modulo their number.
        pulled: Contexts x of the arms pulled in the last round, ``(replicas, agents, dim)``.
        reward: Rewards y of the last round, ``(replicas, agents, 1)``.
        own: Sums to which the round is added, ``(replicas, agents, estimators, dim + 1, dim + 1)``.
    """
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            if round_[r, j, 0] == 0:
                continue
            add_square(pulled[r, j], reward[r, j, 0], own[r, j, (round_[r, j, 0] - 1) % own.shape[2]])


@allocating_kernel
def rebuild(news, own, received, shift, inverse, moment, log_det):
    """Recomputes the ridge regressions of agents that have received messages: inverse, log-determinant and moment.

    The matrix of a regression is V = Gram matrix of ``own`` + Gram matrix of ``received`` + ``shift`` I, and its moment
    b is the sum of the last columns of ``own`` and ``received``.

    Args:
        news: Agents that have received messages in this round, bool ``(replicas, agents)``; others are unchanged.
        own: The agents' own sums of [x; y][x; y]^T, ``(replicas, agents, estimators, dim + 1, dim + 1)``.
        received: Aggregates of the sums of other agents, same shape; noise may have made them asymmetric.
        shift: Multiple of I that is added to V, ``(replicas, agents)``.
        inverse: Receives V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: Receives b, ``(replicas, agents, estimators, dim)``.
        log_det: Receives log det V, ``(replicas, agents, estimators)``.

    Returns:
        Whether each V is positive definite, bool ``(replicas, agents, estimators)``; where it is not, only the moment
        has changed.
    """
    rows, dim = moment.shape[:3], moment.shape[3]
    matrix, factor = np.empty((dim, dim)), np.zeros((dim, dim))
    definite = np.ones(rows, np.bool_)
    for r in range(rows[0]):
        for j in range(rows[1]):
            if not news[r, j]:
                continue
            for e in range(rows[2]):
                mine, theirs = own[r, j, e], received[r, j, e]
                for i in range(dim):
                    for h in range(i + 1):
                        # Own sums are exact and therefore symmetric. Noise in received sums need not be symmetric, so
                        # that the mean with the transpose is used.
                        matrix[i, h] = mine[i, h] + 0.5 * (theirs[i, h] + theirs[h, i])
                    moment[r, j, e, i] = mine[i, dim] + 0.5 * (theirs[i, dim] + theirs[dim, i])
                value = factorise(matrix, shift[r, j], factor)
                if np.isnan(value):
                    definite[r, j, e] = False
                else:
                    log_det[r, j, e] = value
                    invert(factor, inverse[r, j, e])
    return definite


@allocating_kernel
def is_due(active, round_, contexts, arm, inverse, log_det, synchronised, waited, spread, threshold, send):
    """Marks agents that ask to send: log det(V + x x^T + spread I) - log det S >= threshold / (waited + 1).

    Here V is the agent's regularised Gram matrix, x the context of the arm about to be pulled, and S the V of the last
    synchronisation (Dubey and Pentland 2020, Algorithm 1, line 12).

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others do not send.
        round_: Number of rounds played, ``(replicas, agents, 1)``; modulo the number of estimators it is the index of
            the estimator that is used.
        contexts: Contexts of all arms, ``(replicas, agents, arms, dim)``.
        arm: Arms about to be pulled, ``(replicas, agents)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        synchronised: log det S, same shape.
        waited: Number of rounds since the last synchronisation, ``(replicas, agents)``.
        spread: rho_max - rho_min >= 0 of the noise, same shape as ``waited``.
        threshold: D, the threshold of the condition.
        send: Receives the marks, bool ``(replicas, agents)``.
    """
    dim = contexts.shape[3]
    factor, product = np.zeros((dim, dim)), np.empty(dim)
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            send[r, j] = False
            if not active[r, j, 0]:
                continue
            e = round_[r, j, 0] % log_det.shape[2]
            x = contexts[r, j, arm[r, j]]
            matrix = inverse[r, j, e].copy()
            grown = log_det[r, j, e] + np.log1p(rank_one(matrix, x, product))
            if spread[r, j] > 0.0:
                # With W = V + x x^T, whose inverse is known, and s = spread: det(W + s I) = det(W) det(I + s W^-1).
                matrix *= spread[r, j]
                grown += factorise(matrix, 1.0, factor)
            send[r, j] = grown - synchronised[r, j, e] >= threshold / (waited[r, j] + 1.0)


@allocating_kernel
def has_grown(active, contexts, arm, base, fresh, ridge, log_growth, send):
    """Marks agents that ask to send: log det(base + fresh + x x^T + ridge I) - log det(base + ridge I) > log_growth.

    Here base and fresh are the Gram matrices before and since the agent's last upload, and x is the context of the arm
    about to be pulled.

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others do not send.
        contexts: Contexts of all arms, ``(replicas, agents, arms, dim)``.
        arm: Arms about to be pulled, ``(replicas, agents)``.
        base: Sums of [x; y][x; y]^T without the data since the last upload, ``(replicas, agents, dim + 1, dim + 1)``;
            the Gram matrix is the top left block.
        fresh: Sums of [x; y][x; y]^T since the last upload, same shape.
        ridge: Multiple of I that is added to Gram matrices, > 0.
        log_growth: Logarithm of the growth of the determinant that triggers an upload.
        send: Receives the marks, bool ``(replicas, agents)``.
    """
    dim = contexts.shape[3]
    matrix, factor = np.empty((dim, dim)), np.zeros((dim, dim))
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            send[r, j] = False
            if not active[r, j, 0]:
                continue
            x = contexts[r, j, arm[r, j]]
            for i in range(dim):
                for h in range(i + 1):
                    matrix[i, h] = base[r, j, i, h] + (ridge if h == i else 0.0)
                    matrix[i, h] += fresh[r, j, i, h] + x[i] * x[h]
            before = factorise(base[r, j], ridge, factor)
            send[r, j] = factorise(matrix, 0.0, factor) - before > log_growth


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
    log_floor = gram.shape[-1] * (np.log(ridge) - np.log(factor))
    tilt = (added + lift) * parameter_bound + error
    confidence = Confidence(log_floor, np.sqrt(factor), np.zeros_like(factor), tilt)
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
