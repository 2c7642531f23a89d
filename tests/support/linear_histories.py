"""Histories of contexts and rewards, for tests of regressions."""

from math import sqrt

import numpy as np

from fedbandit_envs.linear_v0 import parallel_env


def band_history(rounds):
    """Contexts and rewards of the first arm, always, of one agent of the band; arms are shuffled, so it is any arm."""
    env = parallel_env(num_agents=1, num_arms=2, dim=10, max_cycles=rounds)
    env.reset_batch([0])
    arm = np.zeros((1, 1), np.int64)
    contexts, rewards = np.empty((rounds, 10)), np.empty(rounds)
    for t in range(rounds):
        observation = env.step_batch(arm).observation
        contexts[t], rewards[t] = observation["pulled_context"][0, 0], observation["last_reward"][0, 0, 0]
    return contexts, rewards


def ridge_by_least_squares(contexts, rewards, ridge):
    dim = contexts.shape[1]
    rows = np.vstack([contexts, sqrt(ridge) * np.eye(dim)])
    parameter = np.linalg.lstsq(rows, np.append(rewards, np.zeros(dim)), rcond=None)[0]
    # det V is the squared product of the singular values of the rows, which are not squared on the way.
    return parameter, 2 * np.log(np.linalg.svd(rows, compute_uv=False)).sum()
