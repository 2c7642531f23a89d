"""How noisy rewards are is what the environment says: registered baselines bring no number of their own."""

from collections.abc import Mapping

import numpy as np
import pytest

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.aggregators import gram_inbox, make_aggregator
from fedbandit_envs.baselines.linear.linucb import LinUCB, SupLinUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.linear.env import LinearProblem
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers import Channel

TASKS = {name: (name, {}) for name in REGISTRY.own if name != "FedClassification-v0"}
TASKS |= {task.id: (task.env_id, task.env_kwargs) for suite in SUITES.own.values() for task in suite.tasks}


def flat(settings):
    """Returns the names in nested settings."""
    return {*settings}.union(*(flat(value) for value in settings.values() if isinstance(value, Mapping)))


@pytest.mark.parametrize("name", BASELINES.own)
def test_no_baseline_is_given_the_noise_of_rewards_or_a_horizon(name):
    baseline = BASELINES[name]
    given = flat(baseline.policy_kwargs).union(*(flat(one.kwargs) for one in baseline.wrappers.values()))
    assert given.isdisjoint({"noise_sd", "reward_sd", "reward_variance", "horizon"})


@pytest.mark.parametrize("task", TASKS)
def test_policies_take_it_from_their_environment(task):
    env_id, settings = TASKS[task]
    env = make_federation(env_id, max_cycles=64, **settings)
    problem = env.unwrapped
    if not isinstance(problem, LinearProblem):
        return
    given = {"reward": problem.defaults["reward"], "reward_sd": 0.1, **REGISTRY[env_id].kwargs, **settings}
    law, sd = given["reward"], given["reward_sd"]
    # Rewards in [0, 1] are 1/2-sub-Gaussian (Hoeffding's lemma).
    right = sd if law == "normal" else 0.5
    seeds = np.zeros((1, env.max_num_agents), np.uint64)
    for name, baseline in BASELINES.own.items():
        policy = baseline.make_policy() if baseline.fits(env_id) else None
        if isinstance(policy, LinUCB | SupLinUCB):
            try:
                policy.reset(baseline.wrap(env).policy_spec, seeds)
            except UnfitError:
                continue
            assert policy._noise_sd == right, name
    spec = Channel(env).policy_spec
    weighed = make_aggregator("precision").start(gram_inbox(spec, (1, 1)))
    assert weighed.reward_variance == {"normal": sd**2, "beta": 1 / 8}.get(law, 1 / 4)
