"""Submitted policies for tests: files with one class, and a short episode of arms."""

import numpy as np

from fedbandit_envs import arms_v0
from fedbandit_envs.leaderboard.sandbox import SandboxedPolicy

ROWS = (2, 3)


def file_with(folder, source):
    """Writes a policy file, and returns its path."""
    path = folder / "policy.py"
    path.write_text(source)
    return path


def start_and_play(path, *, rounds=3, close=True, env=None, **arguments):
    """Plays a few rounds of the policy in a file; returns the policy."""
    env = env or arms_v0.parallel_env(max_cycles=rounds, num_agents=ROWS[1])
    policy = SandboxedPolicy(str(path), **arguments)
    try:
        observation = env.reset_batch(range(ROWS[0])).observation
        policy.reset(env.policy_spec, np.arange(6, dtype=np.uint64).reshape(ROWS))
        for _ in range(rounds):
            observation = env.step_batch(policy.act(observation)).observation
    finally:
        if close:
            policy.close()
    return policy
