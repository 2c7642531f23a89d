"""Ridge regression, and products of the vectors of many arms at once (compiled).

Each row (an agent of a replica) has one or several estimators. The state of an estimator is the inverse of V =
regulariser + sum x x^T over contexts x, the moment b = sum y x with rewards y, and log det V.

The vectors of the arms are the columns of an array ``(dim, arms)``, so that the compiler can use vector instructions.
Only the lower triangle of symmetric matrices is read. The last bit of a product <x, parameter> does not depend on the
memory layout of the contexts.
"""

from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import allocating_kernel, inlined_kernel, inner_kernel, kernel


@inner_kernel
def add_shared_forms(matrix, vectors, count, product, form):
    """Adds the quadratic form x^T M x of each of the first ``count`` vectors x to ``form``, with one M for all.

    Args:
        matrix: M, symmetric, ``(dim, dim)``; the lower triangle is read.
        vectors: The vectors x as columns, ``(dim, arms)``.
        count: How many of the vectors are used, at most ``arms``.
        product: Scratch array, ``(arms,)``.
        form: The numbers that the forms are added to, ``(arms,)``.
    """
    for i in range(matrix.shape[0]):
        x = vectors[i]
        for k in range(count):
            product[k] = matrix[i, i] * x[k]
        for h in range(i):
            weight = 2.0 * matrix[i, h]
            other = vectors[h]
            for k in range(count):
                product[k] += weight * other[k]
        for k in range(count):
            form[k] += product[k] * x[k]


@inner_kernel
def add_own_forms(matrices, vectors, product, form):
    """Adds the quadratic form x_k^T M_k x_k of every arm k to ``form``, where each arm has its own matrix M_k.

    Args:
        matrices: The symmetric matrices M_k, ``(dim, dim, arms)``; the lower triangles are read.
        vectors: The vectors x_k as columns, ``(dim, arms)``.
        product: Scratch array, ``(arms,)``.
        form: The numbers that the forms are added to, ``(arms,)``.
    """
    dim, arms = vectors.shape
    for i in range(dim):
        x = vectors[i]
        diagonal = matrices[i, i]
        for k in range(arms):
            product[k] = 0.5 * diagonal[k] * x[k]
        for h in range(i):
            weight = matrices[i, h]
            other = vectors[h]
            for k in range(arms):
                product[k] += weight[k] * other[k]
        for k in range(arms):
            form[k] += 2.0 * product[k] * x[k]


@inner_kernel
def add_own_products(weights, vectors, factor, total):
    """Adds factor <w_k, x_k> to ``total[k]`` for every arm k, where each arm has its own weights w_k.

    Args:
        weights: The weights w_k as columns, ``(dim, arms)``.
        vectors: The vectors x_k as columns, ``(dim, arms)``.
        factor: A number that multiplies all products.
        total: The numbers that the products are added to, ``(arms,)``.
    """
    for i in range(vectors.shape[0]):
        w, x = weights[i], vectors[i]
        for k in range(vectors.shape[1]):
            total[k] += factor * w[k] * x[k]


@inner_kernel
def add_shared_products(weights, vectors, count, total):
    """Adds the inner product <w, x> of each of the first ``count`` vectors x to ``total``, with one w for all.

    Args:
        weights: The weights w, ``(dim,)``.
        vectors: The vectors x as columns, ``(dim, arms)``.
        count: How many of the vectors are used, at most ``arms``.
        total: The numbers that the products are added to, ``(arms,)``.
    """
    for i in range(vectors.shape[0]):
        weight, x = weights[i], vectors[i]
        for k in range(count):
            total[k] += weight * x[k]


class Ridges(NamedTuple):
    """The state of ridge regressions, one for each row and estimator.

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
        """Returns the state of estimators without data: V = ridge I and b = 0.

        Args:
            shape: ``(replicas, agents, estimators)``.
            dim: Dimension of contexts.
            ridge: The regulariser, > 0.
        """
        inverse = np.zeros((*shape, dim, dim)) + np.eye(dim) / ridge
        return cls(inverse, np.zeros((*shape, dim)), np.full(shape, dim * np.log(ridge)))


@inlined_kernel
def dot(x, y):
    """Returns the sum of the products of two vectors, added up from the first to the last."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@inner_kernel
def rank_one(inverse, x, product):
    """Updates V^-1 when x x^T is added to V, by the formula of Sherman and Morrison.

    Args:
        inverse: V^-1, ``(dim, dim)``, replaced by (V + x x^T)^-1.
        x: The context, ``(dim,)``.
        product: Output: V^-1 x with V before the update, ``(dim,)``.

    Returns:
        x^T V^-1 x with V before the update; log det V grows by log(1 + x^T V^-1 x).
    """
    dim = x.shape[0]
    form = 0.0
    for i in range(dim):
        product[i] = dot(inverse[i], x)
        form += product[i] * x[i]
    weight = 1.0 / (1.0 + form)
    for i in range(dim):
        scaled = weight * product[i]
        for h in range(i + 1):
            inverse[i, h] -= scaled * product[h]
            # The upper triangle is copied from the lower, so that rounding cannot make the matrix asymmetric.
            inverse[h, i] = inverse[i, h]
    return form


@inner_kernel
def correct(inverse, parameter, x, y, product):
    """Updates an estimate by one observation, with recursive least squares: it is moved by the prediction error.

    Mathematically the result is V^-1 b, but it is more exact numerically: V^-1 b multiplies the rounding errors of V^-1
    by a moment that grows with the rounds, which loses three digits if contexts are nearly collinear.

    Args:
        inverse: V^-1, ``(dim, dim)``, replaced by (V + x x^T)^-1.
        parameter: The estimate V^-1 b, ``(dim,)``, replaced by (V + x x^T)^-1 (b + y x).
        x: The context, ``(dim,)``.
        y: The reward observed with it.
        product: Output: V^-1 x with V before the update, ``(dim,)``.

    Returns:
        The prediction error y - <x, parameter> and the weight 1 / (1 + x^T V^-1 x), both from before the update. The
        estimate has grown by error * weight * ``product``.
    """
    surprise = y
    for i in range(x.shape[0]):
        surprise -= x[i] * parameter[i]
    weight = 1.0 / (1.0 + rank_one(inverse, x, product))
    for i in range(x.shape[0]):
        parameter[i] += weight * surprise * product[i]
    return surprise, weight


@inner_kernel
def factorise(matrix, shift, factor):
    """Computes the Cholesky factor of matrix + shift I: the lower triangular L with L L^T = matrix + shift I.

    Args:
        matrix: Symmetric, with at least as many rows and columns as ``factor``; the lower triangle of its top left
            ``(dim, dim)`` block is read.
        shift: The number that is added to the diagonal.
        factor: Output: L in its lower triangle, ``(dim, dim)``.

    Returns:
        log det of the shifted matrix, or NaN if it is not positive definite.
    """
    log_det = 0.0
    for i in range(factor.shape[0]):
        for h in range(i + 1):
            value = matrix[i, h] if h < i else matrix[i, i] + shift
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


@inner_kernel
def solve(factor, right, solution):
    """Solves L L^T ``solution`` = ``right`` for the lower triangular matrix L = ``factor``; vectors are ``(dim,)``."""
    dim = right.shape[0]
    for i in range(dim):
        value = right[i]
        for h in range(i):
            value -= factor[i, h] * solution[h]
        solution[i] = value / factor[i, i]
    for i in range(dim - 1, -1, -1):
        value = solution[i]
        for h in range(i + 1, dim):
            value -= factor[h, i] * solution[h]
        solution[i] = value / factor[i, i]


@allocating_kernel
def lies_below(statistics, least):
    """Returns whether the smallest eigenvalue of each Gram matrix is below (or equal to) a bound, bool ``(some,)``.

    A Cholesky factorisation fails in that case, and is faster than computing eigenvalues.

    Args:
        statistics: Sums of [x; y][x; y]^T, ``(some, dim + 1, dim + 1)``, whose top left ``(dim, dim)`` blocks are the
            Gram matrices; the lower triangles are read.
        least: The bound for each, ``(some,)``.
    """
    dim = statistics.shape[1] - 1
    low = np.zeros(statistics.shape[0], np.bool_)
    factor = np.empty((dim, dim))
    for n in range(statistics.shape[0]):
        low[n] = np.isnan(factorise(statistics[n], -least[n], factor))
    return low


@inner_kernel
def invert(factor, inverse):
    """Writes (L L^T)^-1 to ``inverse``, ``(dim, dim)``; ``factor`` contains L, and is overwritten."""
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
def observe(round_, pulled, reward, product, inverse, moment, log_det):
    """Adds the most recent round's observation to one estimator of each agent.

    With several estimators round t, counted from 1, goes to estimator (t - 1) modulo their number.

    Args:
        round_: Number of rounds played, ``(replicas, agents, 1)``; with 0 nothing is added.
        pulled: Contexts of the last round, ``(replicas, agents, dim)``.
        reward: Rewards of the last round, ``(replicas, agents, 1)``.
        product: Scratch array, ``(dim,)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: b, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
    """
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            if round_[r, j, 0] == 0:
                continue
            e = (round_[r, j, 0] - 1) % moment.shape[2]
            log_det[r, j, e] += np.log1p(rank_one(inverse[r, j, e], pulled[r, j], product))
            for i in range(moment.shape[3]):
                moment[r, j, e, i] += reward[r, j, 0] * pulled[r, j, i]


def last_of(observation: Arrays) -> tuple[Array, Array, Array]:
    """Returns the number of rounds played, and the context and the reward of the last one, as kernels take them."""
    return observation["round"], observation["pulled_context"], observation["last_reward"]


@kernel(inline="always")
def estimate(inverse, moment, parameter):
    """Writes the ridge estimate V^-1 b to ``parameter``, given ``inverse`` = V^-1 and ``moment`` = b."""
    for i in range(moment.shape[0]):
        parameter[i] = dot(inverse[i], moment)


# Its only caller contains it: compiled by itself, too, it would make a first step a tenth longer.
@kernel(inline="always")
def upper_bounds(contexts, inverse, parameter, radius, tilt, width, bound):
    """Computes upper confidence bounds <x, parameter> + radius ||x||_{V^-1} + tilt ||V^-1 x|| of all arms of a row.

    Args:
        contexts: Contexts x, ``(dim, arms)``; arms are last, for vector instructions.
        inverse: V^-1, ``(dim, dim)``.
        parameter: The estimate of theta*, ``(dim,)``.
        radius: Factor of the norm of x in V^-1, >= 0.
        tilt: Factor of the norm of V^-1 x, >= 0.
        width: Scratch array, ``(3, arms)``.
        bound: Output: the bounds, ``(arms,)``.
    """
    arms = contexts.shape[1]
    square, length, product = width[0], width[1], width[2]
    for k in range(arms):
        bound[k] = square[k] = length[k] = 0.0
    add_shared_products(parameter, contexts, arms, bound)
    if tilt == 0.0:
        add_shared_forms(inverse, contexts, arms, product, square)
        for k in range(arms):
            # Rounding may make a square slightly negative, of which there is no root.
            bound[k] += radius * np.sqrt(0.0 if square[k] < 0.0 else square[k])
        return
    for i in range(contexts.shape[0]):
        x = contexts[i]
        for k in range(arms):
            product[k] = 0.0
        add_shared_products(inverse[i], contexts, arms, product)
        for k in range(arms):
            square[k] += product[k] * x[k]
            length[k] += product[k] * product[k]
    for k in range(arms):
        bound[k] += radius * np.sqrt(0.0 if square[k] < 0.0 else square[k]) + tilt * np.sqrt(length[k])


def arms_last(contexts: Array) -> Array:
    """Returns contexts ``(replicas, agents, arms, dim)`` as a contiguous array ``(replicas, agents, dim, arms)``.

    Environments store contexts in this order, for vector instructions, so that usually a view is returned; only
    contexts that a wrapper has copied are transposed.
    """
    return np.ascontiguousarray(contexts.swapaxes(2, 3))


@kernel(inline="always")
def largest(bound):
    """Returns the index of the largest entry of an array, of equal ones the first."""
    best = 0
    for k in range(1, bound.shape[0]):
        if bound[k] > bound[best]:
            best = k
    return best


@inlined_kernel
def expect(contexts, parameter, means):
    """Computes the expected reward <x, parameter> of each arm of one row (an agent of a replica).

    Args:
        contexts: Contexts x of the arms, ``(dim, arms)``.
        parameter: The parameter or an estimate of it, ``(dim,)``.
        means: Output: the expected rewards, ``(arms,)``.
    """
    for k in range(contexts.shape[1]):
        means[k] = 0.0
    for i in range(contexts.shape[0]):
        x, weight = contexts[i], parameter[i]
        for k in range(contexts.shape[1]):
            means[k] += weight * x[k]


@kernel
def _expect_rows(contexts, parameter, means):
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            expect(contexts[r, j], parameter[r, j], means[r, j])


def expected_rewards(contexts: Array, parameter: Array, out: Array | None = None) -> Array:
    """Returns the expected reward <x, parameter> of every agent's arms, float64 ``(replicas, agents, arms)``.

    Args:
        contexts: Contexts x of the arms, ``(replicas, agents, arms, dim)``.
        parameter: Each agent's parameter or estimate of it, ``(replicas, agents, dim)``.
        out: The array to fill and return; None for a new one.
    """
    means = np.empty(contexts.shape[:3]) if out is None else out
    _expect_rows(arms_last(contexts), np.ascontiguousarray(parameter, np.float64), means)
    return means
