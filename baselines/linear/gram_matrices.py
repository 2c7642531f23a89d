"""Ridge regressions from own and received sums of [x; y][x; y]^T (compiled)."""

import numpy as np

from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.linear.ridge import factorise, invert
from fedbandit_envs.linear.rounds import add_square


@kernel
def keep(round_, pulled, reward, own):
    """Adds [x; y][x; y]^T of the last round to the agents' own sums; several estimators take the rounds in turn.

    Args:
        round_: Rounds played, ``(replicas, agents, 1)``.
        pulled: Contexts x of the arms pulled last, ``(replicas, agents, dim)``.
        reward: Their rewards y, ``(replicas, agents, 1)``.
        own: Sums that are added to, ``(replicas, agents, estimators, dim + 1, dim + 1)``.
    """
    dim = pulled.shape[2]
    pair = np.empty(dim + 1)
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            if round_[r, j, 0] == 0:
                continue
            for i in range(dim):
                pair[i] = pulled[r, j, i]
            pair[dim] = reward[r, j, 0]
            add_square(pair, own[r, j, (round_[r, j, 0] - 1) % own.shape[2]])


@kernel
def rebuild(news, own, received, shift, inverse, moment, log_det):
    """Recomputes V = own + received + shift I, its inverse, log-determinant and moment, for rows with news.

    Args:
        news: Rows that have received something, bool ``(replicas, agents)``.
        own: Own sums of [x; y][x; y]^T, ``(replicas, agents, estimators, dim + 1, dim + 1)``.
        received: What stands for the sum of those of others, same shape; noise may have made it asymmetric.
        shift: Added to the diagonal, ``(replicas, agents)``.
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
                        # Sums of exact data are symmetric, noise need not be.
                        matrix[i, h] = mine[i, h] + 0.5 * (theirs[i, h] + theirs[h, i])
                    matrix[i, i] += shift[r, j]
                    moment[r, j, e, i] = mine[i, dim] + 0.5 * (theirs[i, dim] + theirs[dim, i])
                value = factorise(matrix, factor)
                if np.isnan(value):
                    definite[r, j, e] = False
                else:
                    log_det[r, j, e] = value
                    invert(factor, inverse[r, j, e])
    return definite
