"""Ridge regressions from own and received sums of [x; y][x; y]^T over contexts x and rewards y (compiled)."""

import numpy as np

from fedbandit_envs.basics.compiled import allocating_kernel, kernel
from fedbandit_envs.linear.ridge import factorise, invert
from fedbandit_envs.linear.rounds import add_square


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
