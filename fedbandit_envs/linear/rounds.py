"""One round of a linear problem for all rows: observations, statistic and regret (compiled)."""

from fedbandit_envs.basics.compiled import kernel


@kernel(inline="always")
def add_square(x, y, statistic):
    """Adds the matrix v v^T with v = [x; y] to a statistic ``(dim + 1, dim + 1)``.

    x is the context of the arm that was pulled, ``(dim,)``, and y its reward.
    """
    dim = x.shape[0]
    for i in range(dim):
        for h in range(dim):
            statistic[i, h] += x[i] * x[h]
        statistic[i, dim] += x[i] * y
        statistic[dim, i] += x[i] * y
    statistic[dim, dim] += y * y


@kernel
def take_in(active, arm, contexts, reward, last, pulled, total):
    """Writes rewards and contexts of a round to the observations, and adds [x; y][x; y]^T of them to the statistic.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``. For others ``pulled`` is set to 0 and ``total``
            stays as it is; their rewards are 0.
        arm: The arms pulled, ``(replicas, agents)``.
        contexts: Contexts of all arms, ``(replicas, agents, dim, arms)``.
        reward: Realised rewards, ``(replicas, agents)``.
        last: Output: a copy of the rewards, ``(replicas, agents, 1)``.
        pulled: Output: contexts of the arms pulled, ``(replicas, agents, dim)``.
        total: Statistic to which [x; y][x; y]^T is added, ``(replicas, agents, dim + 1, dim + 1)``.
    """
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            last[r, j, 0] = reward[r, j]
            for i in range(contexts.shape[2]):
                pulled[r, j, i] = contexts[r, j, i, arm[r, j]] if active[r, j] else 0.0
            if active[r, j]:
                add_square(pulled[r, j], reward[r, j], total[r, j])


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
            if not active[r, j]:
                continue
            # Four searches that do not depend on each other let the processor work in parallel.
            mean = means[r, j]
            a = b = c = d = mean[0]
            k = 0
            while k + 4 <= mean.shape[0]:
                w, x, y, z = mean[k], mean[k + 1], mean[k + 2], mean[k + 3]
                a, b = w if w > a else a, x if x > b else b
                c, d = y if y > c else c, z if z > d else d
                k += 4
            while k < mean.shape[0]:
                a = mean[k] if mean[k] > a else a
                k += 1
            a, c = b if b > a else a, d if d > c else c
            regret[r, j] = (c if c > a else a) - mean[arm[r, j]]
