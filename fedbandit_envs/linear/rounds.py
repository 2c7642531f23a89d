"""One round of a linear problem for all rows: what is pulled, what is known of it, and regret."""

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
def of_arms(values, arm, own):
    """Writes each row's value of its arm.

    Args:
        values: ``(replicas, agents, arms)``.
        arm: Arms, ``(replicas, agents)``.
        own: Receives the values, likewise.
    """
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            own[r, j] = values[r, j, arm[r, j]]


@kernel
def take_in(acting, arm, contexts, reward, pulled, total):
    """Takes in what was pulled.

    Args:
        acting: Who acts, bool ``(replicas, agents)``; the others pull nothing, and get 0.
        arm: Arms, ``(replicas, agents)``.
        contexts: ``(replicas, agents, arms, dim)``.
        reward: Realised rewards, ``(replicas, agents)``.
        pulled: Receives the contexts pulled, ``(replicas, agents, dim)``.
        total: [x; y][x; y]^T is added to it, ``(replicas, agents, dim + 1, dim + 1)``.
    """
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not acting[r, j]:
                pulled[r, j] = 0.0
                continue
            x = pulled[r, j]
            for i in range(x.shape[0]):
                x[i] = contexts[r, j, arm[r, j], i]
            add_observation(total[r, j], x, reward[r, j])


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
                best = means[r, j, 0]
                for k in range(1, means.shape[2]):
                    best = max(best, means[r, j, k])
                regret[r, j] = best - means[r, j, arm[r, j]]
