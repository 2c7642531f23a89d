"""Own statistics and what is pooled of those that others tell, made into ridge regressions (compiled)."""

import numpy as np

from fedbandit_envs.compiled import kernel
from fedbandit_envs.linear.ridge import factorise, invert
from fedbandit_envs.linear.rounds import add_observation


@kernel
def keep(round_, pulled, reward, own):
    """Adds [x; y][x; y]^T of the last round to the agents' own statistics; estimators take rounds in turn.

    Args:
        round_: Rounds played, ``(replicas, agents, 1)``.
        pulled: The contexts pulled last, ``(replicas, agents, dim)``.
        reward: What they paid, ``(replicas, agents, 1)``.
        own: Added to, ``(replicas, agents, estimators, dim + 1, dim + 1)``.
    """
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            if round_[r, j, 0] == 0:
                continue
            statistic = own[r, j, (round_[r, j, 0] - 1) % own.shape[2]]
            add_observation(statistic, pulled[r, j], reward[r, j, 0])


@kernel
def rebuild(news, own, pooled, shift, inverse, moment, log_det):
    """Makes V = own + pooled + shift I anew for rows with news, and all that is held of it.

    Args:
        news: Which rows, bool ``(replicas, agents)``.
        own: Own statistics [x; y][x; y]^T, ``(replicas, agents, estimators, dim + 1, dim + 1)``.
        pooled: What stands for those of others, likewise.
        shift: Added to the diagonal, ``(replicas, agents)``.
        inverse: Receives V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: Receives b, ``(replicas, agents, estimators, dim)``.
        log_det: Receives log det V, ``(replicas, agents, estimators)``.

    Returns:
        Whether each V is positive definite, bool ``(replicas, agents, estimators)``; where it is not, nothing has
        changed but its moment.
    """
    rows, dim = moment.shape[:3], moment.shape[3]
    matrix, factor = np.empty((dim, dim)), np.zeros((dim, dim))
    definite = np.ones(rows, np.bool_)
    for r in range(rows[0]):
        for j in range(rows[1]):
            if not news[r, j]:
                continue
            for e in range(rows[2]):
                mine, theirs = own[r, j, e], pooled[r, j, e]
                for i in range(dim):
                    for h in range(i + 1):
                        # Noise need not be symmetric; what it is added to is.
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
