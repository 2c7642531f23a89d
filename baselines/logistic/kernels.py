"""Logistic models (compiled): maximum likelihood with a ridge by Newton's method, and online Newton steps.

Online steps end with a projection on a ball or the probability simplex.
"""

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError, require_pool
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.ridge import factorise, rank_one, solve

_NEWTON_STEPS = 100


class PoolFeatures:
    """The vectors of a replica's pool that are known so far.

    Attributes:
        known: The vectors, ``(replicas, size, dim)``; 0 where a vector is not known.
    """

    def __init__(self, spec: PolicySpec, replicas: int) -> None:
        """Starts without vectors, for an environment whose contexts come from a pool.

        Raises:
            UnfitError: Contexts do not come from a pool.
        """
        require_pool(spec)
        (size,) = spec.observation["pool_pulls"].shape or (0,)
        (dim,) = spec.observation["pulled_context"].shape or (0,)
        self.known = np.zeros((replicas, size, dim))

    def add(self, index: Array, contexts: Array) -> None:
        """Adds vectors, ``(replicas, ..., dim)``, by their numbers in the pool, ``(replicas, ...)``.

        Vectors of zeros are left out: those are shown to agents that have not acted yet.

        Raises:
            UnfitError: Agents have other vectors under the same number.
        """
        for known, numbers, offered in zip(self.known, index, contexts, strict=True):
            shown = offered.any(axis=-1)
            place, vectors = numbers[shown], offered[shown]
            known[place] = vectors
            if not np.array_equal(known[place], vectors):
                raise UnfitError("contexts of one number differ between agents; one pool for all is required")


@allocating_kernel
def maximise(features, pulls, rewards, ridge, model):
    """Replaces models by the minimisers of sum (ln(1 + e^z) - y z) + ridge |w|^2 / 2 with z = <x, w>.

    Newton's method starts from the models given, and halves a step that makes the norm of the gradient larger.

    Args:
        features: Vectors x of the pool, ``(replicas, size, dim)``.
        pulls: Number of observations of each vector, ``(replicas, rows, size)``.
        rewards: Sum of their rewards y, same shape.
        ridge: The ridge, > 0.
        model: Models w, ``(replicas, rows, dim)``.
    """
    dim = model.shape[2]
    gradient, hessian, factor, step = np.empty(dim), np.empty((dim, dim)), np.zeros((dim, dim)), np.empty(dim)
    chance = np.empty(features.shape[1])
    for r in range(model.shape[0]):
        for j in range(model.shape[1]):
            w = model[r, j]
            step[:] = 0.0
            before, size = np.inf, 1.0
            for _ in range(_NEWTON_STEPS):
                norm = 0.0
                for i in range(dim):
                    gradient[i] = ridge * w[i]
                    hessian[i] = 0.0
                    hessian[i, i] = ridge
                _judge(features[r], w, chance)
                _add_errors(features[r], pulls[r, j], rewards[r, j], chance, gradient)
                _add_slopes(features[r], pulls[r, j], chance, hessian)
                for i in range(dim):
                    norm += gradient[i] * gradient[i]
                norm = np.sqrt(norm)
                if norm > before:
                    size *= 0.5
                    for i in range(dim):
                        w[i] -= size * step[i]
                    continue
                if norm <= 1e-10:
                    break
                before, size = norm, 1.0
                factorise(hessian, 0.0, factor)
                solve(factor, gradient, step)
                for i in range(dim):
                    step[i] = -step[i]
                    w[i] += step[i]


@allocating_kernel
def derive(features, pulls, rewards, model, gradient):
    """Computes gradients of sum (ln(1 + e^z) - y z) with z = <x, w>.

    Args:
        features: Vectors x of the pool, ``(replicas, size, dim)``.
        pulls: Number of observations of each vector, ``(replicas, rows, size)``.
        rewards: Sum of their rewards y, same shape.
        model: Models w, ``(replicas, rows, dim)``.
        gradient: Output: gradients, ``(replicas, rows, dim)``.
    """
    chance = np.empty(features.shape[1])
    for r in range(model.shape[0]):
        for j in range(model.shape[1]):
            # Agents of a replica are asked at the same model, mostly.
            if j == 0 or _differ(model[r, j], model[r, j - 1]):
                _judge(features[r], model[r, j], chance)
            gradient[r, j] = 0.0
            _add_errors(features[r], pulls[r, j], rewards[r, j], chance, gradient[r, j])


@inner_kernel
def _differ(one, two):
    for i in range(one.shape[0]):  # noqa: SIM110 - compiled
        if one[i] != two[i]:
            return True
    return False


@inner_kernel
def _judge(features, w, chance):
    """Computes the probabilities of a reward of all vectors of a pool, ``(size,)``."""
    for p in range(features.shape[0]):
        z = 0.0
        for i in range(w.shape[0]):
            z += features[p, i] * w[i]
        chance[p] = 1.0 / (1.0 + np.exp(-z))


@inner_kernel
def _add_errors(features, pulls, rewards, chance, gradient):
    """Adds one row's data to a gradient."""
    for p in range(pulls.shape[0]):
        if pulls[p] == 0:
            continue
        error = pulls[p] * chance[p] - rewards[p]
        for i in range(gradient.shape[0]):
            gradient[i] += error * features[p, i]


@inner_kernel
def _add_slopes(features, pulls, chance, hessian):
    """Adds one row's data to the lower triangle of a Hessian."""
    for p in range(pulls.shape[0]):
        if pulls[p] == 0:
            continue
        slope = pulls[p] * chance[p] * (1.0 - chance[p])
        for i in range(hessian.shape[0]):
            for h in range(i + 1):
                hessian[i, h] += slope * features[p, i] * features[p, h]


_MOST_STEPS, _EXACT = 500, 1e-13


@allocating_kernel
def learn(
    pulled, reward, inverse, moment, log_det, matrix, model, squares, losses, slope, largest, on_simplex
):
    """Takes each agent's last observation in: A, b, and the online model w.

    Args:
        pulled: Contexts x of the last round, ``(replicas, agents, dim)``; 0 for agents that did not act.
        reward: Rewards y, ``(replicas, agents, 1)``.
        inverse: A^-1, ``(replicas, agents, 1, dim, dim)``.
        moment: b, to which <x, w> x is added, ``(replicas, agents, 1, dim)``.
        log_det: log det A, ``(replicas, agents, 1)``.
        matrix: A, ``(replicas, agents, dim, dim)``.
        model: w, ``(replicas, agents, dim)``.
        squares: Sum of <x, w>^2, ``(replicas, agents)``.
        losses: Bound of the losses, to which (1 / (1 + exp(-<x, w>)) - y)^2 ||x||^2_{A^-1} / (2 slope) is added.
        slope: A lower bound of the logistic function's slope.
        largest: The largest norm of a model.
        on_simplex: Whether models are projected on the probability simplex in place of the ball.
    """
    dim = pulled.shape[2]
    product, factor, moved = np.empty(dim), np.zeros((dim, dim)), np.empty((4, dim))
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            x, w = pulled[r, j], model[r, j]
            form = rank_one(inverse[r, j, 0], x, product)
            if form == 0.0:
                continue
            log_det[r, j, 0] += np.log1p(form)
            z = 0.0
            for i in range(dim):
                z += x[i] * w[i]
            squares[r, j] += z * z
            error = 1.0 / (1.0 + np.exp(-z)) - reward[r, j, 0]
            losses[r, j] += error * error * form / (1.0 + form) / (2.0 * slope)
            size = 0.0
            for i in range(dim):
                moment[r, j, 0, i] += z * x[i]
                for h in range(dim):
                    matrix[r, j, i, h] += x[i] * x[h]
                # A^-1 x with x counted in A.
                w[i] -= error / slope * product[i] / (1.0 + form)
                size += w[i] * w[i]
            if on_simplex:
                _into_simplex(matrix[r, j], w, moved)
            elif size > largest * largest:
                _into_ball(matrix[r, j], w, largest, factor, moved)


@inner_kernel
def _into_ball(matrix, w, largest, factor, vectors):
    """Replaces w, longer than ``largest``, by the nearest vector of that norm, in the norm of the matrix A.

    It is (A + m I)^-1 A w for the multiplier m > 0 that gives it the norm; Newton's method on 1 / norm finds m.
    """
    dim = w.shape[0]
    target, found, half = vectors[0], vectors[1], vectors[2]
    for i in range(dim):
        target[i] = 0.0
        for h in range(dim):
            target[i] += matrix[i, h] * w[h]
    multiplier = 0.0
    for _ in range(_MOST_STEPS):
        factorise(matrix, multiplier, factor)
        solve(factor, target, found)
        norm, weighted = 0.0, 0.0
        for i in range(dim):
            value = found[i]
            for h in range(i):
                value -= factor[i, h] * half[h]
            half[i] = value / factor[i, i]
            norm += found[i] ** 2
            weighted += half[i] ** 2
        norm = np.sqrt(norm)
        if norm <= largest * (1.0 + _EXACT):
            break
        multiplier += norm * norm / weighted * (norm - largest) / largest
    for i in range(dim):
        w[i] = found[i]


@inner_kernel
def _into_simplex(matrix, w, vectors):
    """Replaces w by the nearest vector on the probability simplex, in the norm of the matrix A.

    In each step mass goes from the entry with the largest slope to the one with the smallest, as much as is best.
    """
    dim = w.shape[0]
    point, slope, target = vectors[0], vectors[1], vectors[2]
    scale = 0.0
    for i in range(dim):
        target[i] = 0.0
        for h in range(dim):
            target[i] += matrix[i, h] * w[h]
        scale = max(scale, matrix[i, i])
        point[i] = 1.0 / dim
    for i in range(dim):
        slope[i] = -target[i]
        for h in range(dim):
            slope[i] += matrix[i, h] * point[h]
    for _ in range(_MOST_STEPS * dim):
        low, high = 0, -1
        for i in range(dim):
            if slope[i] < slope[low]:
                low = i
            if point[i] > 0.0 and (high < 0 or slope[i] > slope[high]):
                high = i
        if slope[high] - slope[low] <= _EXACT * scale:
            break
        curve = matrix[low, low] + matrix[high, high] - 2.0 * matrix[low, high]
        mass = min((slope[high] - slope[low]) / curve, point[high])
        point[low] += mass
        point[high] -= mass
        for i in range(dim):
            slope[i] += mass * (matrix[i, low] - matrix[i, high])
    for i in range(dim):
        w[i] = point[i]
