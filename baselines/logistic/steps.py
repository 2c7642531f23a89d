"""Online Newton steps of logistic models, and their projection on a ball or the probability simplex (compiled)."""

import numpy as np

from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel
from fedbandit_envs.linear.ridge import factorise, rank_one, solve

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
