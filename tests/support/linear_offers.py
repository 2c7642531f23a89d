"""Contexts of whole episodes, rounds of random arms, and the law of directions."""

import numpy as np
from scipy import stats

from fedbandit_envs.linear_v0 import parallel_env

LEVEL = 1e-4


def offers(rounds, replicas=4, **kwargs):
    """Contexts ``(rounds, replicas, agents, arms, dim)`` and theta*, ``(replicas, dim)``."""
    env = parallel_env(max_cycles=rounds, **kwargs)
    contexts = [env.reset_batch(range(replicas)).observation["contexts"].copy()]
    action = np.zeros((replicas, env.max_num_agents), np.int64)
    for _ in range(rounds - 1):
        contexts.append(env.step_batch(action).observation["contexts"].copy())
    return np.stack(contexts), env.hidden()["parameter"][:, 0]


def copied(arrays):
    return {name: array.copy() for name, array in arrays.items()}


def random_rounds(env, rounds, seeds=(0, 1)):
    """Yields for each round copies: what was observed before, the arms, rewards, infos, and what is observed after."""
    rng = np.random.default_rng(0)
    after = copied(env.reset_batch(seeds).observation)
    for _ in range(rounds):
        arm = rng.integers(0, after["contexts"].shape[2], after["round"].shape[:2])
        before, step = after, env.step_batch(arm)
        after = copied(step.observation)
        yield before, arm, step.reward.copy(), copied(step.info), after


def of_arms(values, arm):
    """Returns what belongs to the arms pulled, of values ``(replicas, agents, arms, ...)``."""
    return values[(*np.indices(arm.shape), arm)]


def points_evenly(directions, axis=0):
    """Says whether unit vectors, ``(many, dim)``, are uniform on the sphere, by the exact law of one coordinate."""
    half = (directions.shape[1] - 1) / 2
    return stats.kstest((directions[:, axis] + 1) / 2, stats.beta(half, half).cdf).pvalue > LEVEL
