"""One round of a linear problem for all rows: what is pulled, what is known of it, and regret."""

import numpy as np

from fedbandit_envs.compiled import kernel


@kernel
def add_observation(statistic, x, y):
    """Adds [x; y][x; y]^T, x of shape ``(dim,)``, to a statistic of shape ``(dim + 1, dim + 1)``."""
    dim = x.shape[0]
    for i in range(dim):
        for h in range(dim):
            statistic[i, h] += x[i] * x[h]
        statistic[i, dim] += x[i] * y
        statistic[dim, i] += x[i] * y
    statistic[dim, dim] += y * y


@kernel
def take_in(acting, arm, contexts, reward, last, pulled, total):
    """Takes in what was pulled.

    Args:
        acting: Who acts, bool ``(replicas, agents)``; the others pull nothing, and get 0.
        arm: Arms, ``(replicas, agents)``.
        contexts: ``(replicas, agents, dim, arms)``.
        reward: Realised rewards, ``(replicas, agents)``.
        last: Receives the same, ``(replicas, agents, 1)``.
        pulled: Receives the contexts pulled, ``(replicas, agents, dim)``.
        total: [x; y][x; y]^T is added to it, ``(replicas, agents, dim + 1, dim + 1)``.
    """
    dim = contexts.shape[2]
    pair = np.empty(dim + 1)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            last[r, j, 0] = reward[r, j]
            if not acting[r, j]:
                pulled[r, j] = 0.0
                continue
            for i in range(dim):
                pair[i] = contexts[r, j, i, arm[r, j]]
                pulled[r, j, i] = pair[i]
            pair[dim] = reward[r, j]
            for i in range(dim + 1):
                for h in range(dim + 1):
                    total[r, j, i, h] += pair[i] * pair[h]


@kernel
def pseudo_regret(acting, arm, means, regret):
    """Writes max <x, theta*> - <x_t, theta*> of those who act, and 0 for the others.

    Args:
        acting: Who acts, bool ``(replicas, agents)``.
        arm: Arms, ``(replicas, agents)``.
        means: Expected rewards, ``(replicas, agents, arms)``.
        regret: Receives it, ``(replicas, agents)``.
    """
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            regret[r, j] = 0.0
            if acting[r, j]:
                regret[r, j] = _highest(means[r, j]) - means[r, j, arm[r, j]]


@kernel
def _highest(numbers):
    """Returns the highest of some numbers; four searches side by side need not wait for each other."""
    a = b = c = d = numbers[0]
    k = 0
    while k + 4 <= numbers.shape[0]:
        a, b = max(a, numbers[k]), max(b, numbers[k + 1])
        c, d = max(c, numbers[k + 2]), max(d, numbers[k + 3])
        k += 4
    while k < numbers.shape[0]:
        a = max(a, numbers[k])
        k += 1
    return max(max(a, b), max(c, d))
