"""One round of the linear bandit for all rows: what is pulled, what is known of it, and regret."""

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
def play_round(acting, action, contexts, means, reward, pulled, total, regret):
    """Plays one round; see :class:`~fedbandit_envs.linear.env.LinearEnv` for the quantities.

    Args:
        acting: Who acts, bool ``(replicas, agents)``; the others pull nothing, and get 0 in what is received.
        action: Arms, ``(replicas, agents)``.
        contexts: ``(replicas, agents, arms, dim)``.
        means: Expected rewards, ``(replicas, agents, arms)``.
        reward: Realised rewards, ``(replicas, agents)``.
        pulled: Receives the contexts pulled, ``(replicas, agents, dim)``.
        total: [x; y][x; y]^T is added to it, ``(replicas, agents, dim + 1, dim + 1)``.
        regret: Receives max <x, theta*> - <x_t, theta*>, ``(replicas, agents)``.
    """
    arms, dim = contexts.shape[2:]
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not acting[r, j]:
                regret[r, j] = 0.0
                pulled[r, j] = 0.0
                continue
            arm = action[r, j]
            best = means[r, j, 0]
            for k in range(1, arms):
                best = max(best, means[r, j, k])
            regret[r, j] = best - means[r, j, arm]
            x = pulled[r, j]
            for i in range(dim):
                x[i] = contexts[r, j, arm, i]
            add_observation(total[r, j], x, reward[r, j])
