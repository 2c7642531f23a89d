"""Two conditions for sending a message: the determinant of an agent's exact Gram matrix has grown enough (compiled)."""

import numpy as np

from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.linear.ridge import factorise, rank_one


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
