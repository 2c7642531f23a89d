"""Two triggers for sending, by growth of the determinant of an agent's exact data (compiled)."""

import numpy as np

from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.linear.ridge import factorise, rank_one


@kernel
def is_due(active, round_, contexts, arm, inverse, log_det, synchronised, waited, spread, threshold, send):
    """Marks agents with log det(V + x x^T + spread I) - log det S >= threshold / (waited + 1).

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others do not send.
        round_: Rounds played, ``(replicas, agents, 1)``; several estimators are used in turn.
        contexts: ``(replicas, agents, arms, dim)``.
        arm: Arms about to be pulled, ``(replicas, agents)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        synchronised: log det S, same shape.
        waited: Rounds since the last synchronisation, ``(replicas, agents)``.
        spread: >= 0, same shape.
        threshold: D.
        send: Receives the marks, bool ``(replicas, agents)``.
    """
    dim = contexts.shape[3]
    matrix, factor, product = np.empty((dim, dim)), np.zeros((dim, dim)), np.empty(dim)
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            send[r, j] = False
            if not active[r, j, 0]:
                continue
            e = round_[r, j, 0] % log_det.shape[2]
            x = contexts[r, j, arm[r, j]]
            matrix[...] = inverse[r, j, e]
            grown = log_det[r, j, e] + np.log1p(rank_one(matrix, x, product))
            if spread[r, j] > 0.0:
                # det(W + s I) = det(W) det(I + s W^-1), with W = V + x x^T.
                matrix *= spread[r, j]
                for i in range(dim):
                    matrix[i, i] += 1.0
                grown += factorise(matrix, factor)
            send[r, j] = grown - synchronised[r, j, e] >= threshold / (waited[r, j] + 1.0)


@kernel
def has_grown(active, contexts, arm, base, fresh, ridge, log_growth, send):
    """Marks agents with log det(base + fresh + x x^T + ridge I) - log det(base + ridge I) > log_growth.

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others do not send.
        contexts: ``(replicas, agents, arms, dim)``.
        arm: Arms about to be pulled, ``(replicas, agents)``.
        base: Gram matrices in their top left corner, ``(replicas, agents, dim + 1, dim + 1)``.
        fresh: Those collected since the last upload, same shape.
        ridge: > 0.
        log_growth: Growth that triggers.
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
                    matrix[i, h] = base[r, j, i, h]
                matrix[i, i] += ridge
            before = factorise(matrix, factor)
            for i in range(dim):
                for h in range(i + 1):
                    matrix[i, h] += fresh[r, j, i, h] + x[i] * x[h]
            send[r, j] = factorise(matrix, factor) - before > log_growth
