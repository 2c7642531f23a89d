"""Ridge regression kept up to date: rank-one updates, log-determinants, confidence bounds (compiled).

For each row (an agent in a replica) and each of its estimators there are V = regulariser + sum x x^T, held as its
inverse, the moment b = sum y x, and log det V.
"""

from typing import NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel
from fedbandit_envs.linear.forms import add_shared_forms, add_shared_products


class Ridges(NamedTuple):
    """Ridge regressions, one for each row and estimator.

    Attributes:
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: b, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
    """

    inverse: Array
    moment: Array
    log_det: Array

    @classmethod
    def without_data(cls, shape: tuple[int, ...], dim: int, ridge: float) -> "Ridges":
        """Starts with V = ridge I.

        Args:
            shape: ``(replicas, agents, estimators)``.
            dim: Dimension of contexts.
            ridge: > 0.
        """
        inverse = np.zeros((*shape, dim, dim))
        inverse[...] = np.eye(dim) / ridge
        return cls(inverse, np.zeros((*shape, dim)), np.full(shape, dim * np.log(ridge)))


@kernel
def rank_one(inverse, x, product):
    """Adds x x^T to V (Sherman and Morrison).

    Args:
        inverse: V^-1, ``(dim, dim)``, replaced by (V + x x^T)^-1.
        x: ``(dim,)``.
        product: Receives V^-1 x, of V as it was.

    Returns:
        x^T V^-1 x, of V as it was; log det V grows by its log1p.
    """
    dim = x.shape[0]
    form = 0.0
    for i in range(dim):
        value = 0.0
        for h in range(dim):
            value += inverse[i, h] * x[h]
        product[i] = value
        form += value * x[i]
    weight = 1.0 / (1.0 + form)
    for i in range(dim):
        scaled = weight * product[i]
        for h in range(i + 1):
            inverse[i, h] -= scaled * product[h]
            # Both halves from one, so that rounding cannot part them.
            inverse[h, i] = inverse[i, h]
    return form


@kernel
def correct(inverse, parameter, x, y, product):
    """Takes in one observation: recursive least squares, an estimate corrected by each observation's surprise.

    It is what V^-1 b is, but more exact: V^-1 b multiplies the rounding errors of V^-1 by a moment that grows with the
    rounds, and where contexts are nearly collinear that costs three digits.

    Args:
        inverse: V^-1, ``(dim, dim)``, replaced by (V + x x^T)^-1.
        parameter: The estimate V^-1 b, ``(dim,)``, replaced by (V + x x^T)^-1 (b + y x).
        x: ``(dim,)``.
        y: What was observed there.
        product: Receives V^-1 x, of V as it was.

    Returns:
        The surprise y - <x, parameter>, and the weight 1 / (1 + x^T V^-1 x) with which ``product`` times it was added;
        both of what was before.
    """
    surprise = y
    for i in range(x.shape[0]):
        surprise -= x[i] * parameter[i]
    weight = 1.0 / (1.0 + rank_one(inverse, x, product))
    for i in range(x.shape[0]):
        parameter[i] += weight * surprise * product[i]
    return surprise, weight


@kernel
def factorise(matrix, factor):
    """Cholesky: finds the lower triangular L with L L^T = matrix.

    Args:
        matrix: Symmetric, ``(dim, dim)``; the lower triangle is read.
        factor: Receives L in its lower triangle.

    Returns:
        log det of the matrix, or NaN if it is not positive definite.
    """
    log_det = 0.0
    for i in range(matrix.shape[0]):
        for h in range(i + 1):
            value = matrix[i, h]
            for k in range(h):
                value -= factor[i, k] * factor[h, k]
            if h < i:
                factor[i, h] = value / factor[h, h]
            else:
                if not value > 0.0:
                    return np.nan
                factor[i, i] = np.sqrt(value)
                log_det += np.log(value)
    return log_det


@kernel
def invert(factor, inverse):
    """Writes (L L^T)^-1 into ``inverse``; ``factor`` holds L and is used up."""
    dim = factor.shape[0]
    for i in range(dim):
        factor[i, i] = 1.0 / factor[i, i]
        for h in range(i):
            value = 0.0
            for k in range(h, i):
                value -= factor[i, k] * factor[k, h]
            factor[i, h] = value * factor[i, i]
    for i in range(dim):
        for h in range(i + 1):
            value = 0.0
            for k in range(i, dim):
                value += factor[k, i] * factor[k, h]
            inverse[i, h] = value
            inverse[h, i] = value


@kernel
def observe(round_, pulled, reward, inverse, moment, log_det):
    """Takes in the last round of all rows; the estimators take rounds in turn.

    Args:
        round_: Rounds played, ``(replicas, agents, 1)``; nothing happens before the first.
        pulled: Contexts of the last round, ``(replicas, agents, dim)``.
        reward: Its rewards, ``(replicas, agents, 1)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: b, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
    """
    product = np.empty(pulled.shape[2])
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            if round_[r, j, 0] == 0:
                continue
            e = (round_[r, j, 0] - 1) % moment.shape[2]
            log_det[r, j, e] += np.log1p(rank_one(inverse[r, j, e], pulled[r, j], product))
            for i in range(moment.shape[3]):
                moment[r, j, e, i] += reward[r, j, 0] * pulled[r, j, i]


@kernel(forceinline=True)
def estimate(inverse, moment, parameter):
    """Writes V^-1 b."""
    for i in range(moment.shape[0]):
        value = 0.0
        for h in range(moment.shape[0]):
            value += inverse[i, h] * moment[h]
        parameter[i] = value


@kernel
def upper_bounds(contexts, inverse, parameter, radius, tilt, width, bound):
    """Writes <x, parameter> + radius ||x||_{V^-1} + tilt ||V^-1 x|| for every arm.

    Args:
        contexts: ``(dim, arms)``, so that arms fill vector lanes.
        inverse: V^-1, ``(dim, dim)``.
        parameter: ``(dim,)``.
        radius: >= 0.
        tilt: >= 0.
        width: Scratch, ``(3, arms)``.
        bound: Receives the bounds, ``(arms,)``.
    """
    arms = contexts.shape[1]
    square, length, product = width[0], width[1], width[2]
    square[:] = 0.0
    bound[:] = 0.0
    add_shared_products(parameter, contexts, arms, bound)
    if tilt == 0.0:
        add_shared_forms(inverse, contexts, arms, product, square)
        for k in range(arms):
            # Rounding may leave a tiny negative square.
            bound[k] += radius * np.sqrt(max(square[k], 0.0))
        return
    length[:] = 0.0
    for i in range(contexts.shape[0]):
        x = contexts[i]
        product[:] = 0.0
        add_shared_products(inverse[i], contexts, arms, product)
        for k in range(arms):
            square[k] += product[k] * x[k]
            length[k] += product[k] * product[k]
    for k in range(arms):
        bound[k] += radius * np.sqrt(max(square[k], 0.0)) + tilt * np.sqrt(length[k])


def arms_last(contexts: Array) -> Array:
    """Returns contexts, ``(replicas, agents, arms, dim)``, as ``(replicas, agents, dim, arms)``, contiguous.

    That is how environments lay them out, so that arms fill vector lanes; only what a wrapper has copied is turned.
    """
    return np.ascontiguousarray(contexts.swapaxes(2, 3))


@kernel
def largest(bound):
    """Returns the index of the largest entry, the first if there are several."""
    best = 0
    for k in range(1, bound.shape[0]):
        if bound[k] > bound[best]:
            best = k
    return best
