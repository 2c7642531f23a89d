"""Episodes of a policy, round by round."""

import pytest

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.randomness.streams import row_seeds


def wrapped(name, env, server=None):
    """Puts a baseline's wrappers around an environment, with other constants of its server policy."""
    baseline = BASELINES[name]
    policy = {**baseline.wrappers["server"].kwargs["policy"], **server} if server else None
    return baseline.wrap(env, {"server": {"policy": policy}} if policy else {})


def begun(env, seeds=(0,)):
    """Returns an environment in the first round of an episode for each seed."""
    env.reset_batch(seeds)
    return env


def refused(policy, env, message, error=UnfitError):
    """Demands that a policy refuses to play an environment."""
    with pytest.raises(error, match=message):
        policy.reset(env.policy_spec, row_seeds([0], env.max_num_agents))


def played(env, policy, seeds=(0,), rounds=None):
    """Yields the arms (or another action) of a round, a copy of what was seen before, and the step."""
    observation = env.reset_batch(seeds).observation
    policy.reset(env.policy_spec, row_seeds(seeds, env.max_num_agents))
    for _ in range(env.max_cycles if rounds is None else rounds):
        before = {name: array.copy() for name, array in observation.items()}
        action = policy.act(observation)
        chosen = (action["action"] if isinstance(action, dict) else action).copy()
        step = env.step_batch(action)
        yield chosen, before, step
        observation = step.observation
