"""One round of a linear problem for all rows: observations, statistic and regret (compiled)."""

import numpy as np

from fedbandit_envs.basics.compiled import kernel


@kernel(inline="always")
def add_square(pair, statistic):
    """Adds the matrix v v^T to a statistic ``(dim + 1, dim + 1)``, where v is ``pair`` = [x; y], ``(dim + 1,)``.

    x is the context of the arm that was pulled and y its reward.
    """
    for i in range(pair.shape[0]):
        for h in range(pair.shape[0]):
            statistic[i, h] += pair[i] * pair[h]


@kernel
def take_in(active, arm, contexts, reward, last, pulled, total):
    """Writes the last rewards and contexts to the observations, and adds them to the statistic, after a pull.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``; others pull nothing, and their outputs are 0.
        arm: The arms pulled, ``(replicas, agents)``.
        contexts: Contexts of all arms, ``(replicas, agents, dim, arms)``.
        reward: Realised rewards, ``(replicas, agents)``.
        last: Output: a copy of the rewards, ``(replicas, agents, 1)``.
        pulled: Output: contexts of the arms pulled, ``(replicas, agents, dim)``.
        total: Statistic to which [x; y][x; y]^T is added, ``(replicas, agents, dim + 1, dim + 1)``.
    """
    dim = contexts.shape[2]
    pair = np.empty(dim + 1)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            last[r, j, 0] = reward[r, j]
            for i in range(dim):
                pair[i] = contexts[r, j, i, arm[r, j]] if active[r, j] else 0.0
                pulled[r, j, i] = pair[i]
            pair[dim] = reward[r, j]
            if active[r, j]:
                add_square(pair, total[r, j])


@kernel
def pseudo_regret(active, arm, means, regret):
    """Computes max <x, theta*> - <x_t, theta*> of active agents, and 0 for others.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``.
        arm: The arms pulled, ``(replicas, agents)``.
        means: Expected rewards <x, theta*> of all arms, ``(replicas, agents, arms)``.
        regret: Output: the regret of the round, ``(replicas, agents)``.
    """
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            regret[r, j] = 0.0
            if active[r, j]:
                regret[r, j] = _highest(means[r, j]) - means[r, j, arm[r, j]]


@kernel(inline="always")
def _highest(numbers):
    """Returns the largest entry of an array; four independent searches let the processor work in parallel."""
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
