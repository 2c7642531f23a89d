"""Ridge regressions on own and received sums of [x; y][x; y]^T over contexts x and rewards y (compiled).

They give upper confidence bounds, the arm with the largest bound, and two conditions for sending a message: the
determinant of an agent's exact Gram matrix has grown enough.
"""

from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, kernel
from fedbandit_envs.linear.ridge import estimate, factorise, invert, largest, rank_one, upper_bounds
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

    @classmethod
    def without_noise(
        cls, shape: tuple[int, ...], dim: int, ridge: float, parameter_bound: float
    ) -> "Confidence":
        """Returns the bounds of ridge regression on exact data (Abbasi-Yadkori et al. 2011, Theorem 2).

        Args:
            shape: Shape of the arrays, ``(replicas, agents, estimators)``.
            dim: Dimension of contexts.
            ridge: The ridge lambda in V = lambda I + sum x x^T.
            parameter_bound: S, an upper bound of ||theta*||.
        """
        return cls(
            np.full(shape, dim * np.log(ridge)),
            np.ones(shape),
            np.full(shape, np.sqrt(ridge) * parameter_bound),
            np.zeros(shape),
        )


@kernel(inline="always")
def reach(log_det, log_floor, inflation, bias, noise_sd, log_failure):
    """Returns the radius, in the norm of V, of a confidence ellipsoid around a ridge estimate.

    It is ``inflation noise_sd sqrt(2 log_failure + log_det - log_floor) + bias``; the term with ``tilt`` of
    :class:`Confidence` is not included.
    """
    # log_det is at least log_floor, except for rounding errors.
    growth = log_det - log_floor
    return inflation * noise_sd * np.sqrt(2.0 * log_failure + (0.0 if growth < 0.0 else growth)) + bias


@kernel
def choose(
    active, round_, contexts, inverse, moment, log_det, log_floor, inflation, bias, tilt, log_failure, caps,
    noise_sd, scale, constant, scratch, parameter, arm,
):  # fmt: skip
    """Writes the arm with the largest upper confidence bound, for each active agent.

    The bound is that of one estimator of each agent or, with caps, the smaller one of its bound and that of a second
    estimator, the cap. Both are computed while the agent's contexts are in the processor's cache.

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others keep their last arm.
        round_: Number of rounds played, ``(replicas, agents, 1)``; modulo the number of estimators it is the index of
            the estimator that is used.
        contexts: Contexts x of all arms, ``(replicas, agents, dim, arms)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: Moments b = sum y x of rewards y, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        log_floor: Log-determinant that ``log_det`` is compared with; see :class:`Confidence`.
        inflation: Factor of the radius; see :class:`Confidence`.
        bias: Error bound in the norm of V^-1; see :class:`Confidence`.
        tilt: Error bound in the Euclidean norm; see :class:`Confidence`.
        log_failure: ln(1/failure), for bounds that fail with probability ``failure``.
        caps: The eight arguments from ``inverse`` to ``log_failure`` of the second estimators, of which each agent has
            one; None without caps, for which Numba compiles a smaller kernel.
        noise_sd: Sub-Gaussian constant of rewards.
        scale: Factor of the radius and of ``tilt``.
        constant: A radius that replaces the scaled one, also of caps, unless it is negative.
        scratch: Scratch array, ``(5, arms)``.
        parameter: Receives the estimates V^-1 b of agents that act, ``(replicas, agents, dim)``.
        arm: Receives the arms, ``(replicas, agents)``.
    """
    width, bound, cap = scratch[:3], scratch[3], scratch[4]
    if caps is not None:
        cap_inverse, cap_moment, cap_log_det, cap_floor, cap_inflation, cap_bias, cap_tilt, cap_failure = caps
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j, 0]:
                continue
            if caps is not None:
                radius = reach(
                    cap_log_det[r, j, 0], cap_floor[r, j, 0], cap_inflation[r, j, 0], cap_bias[r, j, 0], noise_sd,
                    cap_failure,
                )  # fmt: skip
                estimate(cap_inverse[r, j, 0], cap_moment[r, j, 0], parameter[r, j])
                upper_bounds(
                    contexts[r, j], cap_inverse[r, j, 0], parameter[r, j],
                    scale * radius if constant < 0.0 else constant, scale * cap_tilt[r, j, 0], width, cap,
                )  # fmt: skip
            e = round_[r, j, 0] % moment.shape[2]
            radius = reach(
                log_det[r, j, e], log_floor[r, j, e], inflation[r, j, e], bias[r, j, e], noise_sd, log_failure
            )
            estimate(inverse[r, j, e], moment[r, j, e], parameter[r, j])
            upper_bounds(
                contexts[r, j], inverse[r, j, e], parameter[r, j],
                scale * radius if constant < 0.0 else constant, scale * tilt[r, j, e], width, bound,
            )  # fmt: skip
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
