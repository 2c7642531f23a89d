"""Contexts of whole episodes."""

import numpy as np

from fedbandit_envs.linear_v0 import parallel_env


def offers(rounds, replicas=4, **kwargs):
    """Contexts ``(rounds, replicas, agents, arms, dim)`` and theta*, ``(replicas, dim)``."""
    env = parallel_env(max_cycles=rounds, **kwargs)
    contexts = [env.reset_batch(range(replicas)).observation["contexts"].copy()]
    action = np.zeros((replicas, env.max_num_agents), np.int64)
    for _ in range(rounds - 1):
        contexts.append(env.step_batch(action).observation["contexts"].copy())
    return np.stack(contexts), env.hidden()["parameter"][:, 0]
