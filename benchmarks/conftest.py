"""What benchmarks of baselines share."""

import pytest

from fedbandit_envs.randomness.streams import row_seeds


@pytest.fixture
def throughput(benchmark):
    """Times policy, wrappers and environment together in the middle of an episode; returns agent-rounds a second."""

    def timed(env, policy, replicas, rounds):
        seeds = range(replicas)
        observation = env.reset_batch(seeds).observation
        policy.reset(env.policy_spec, row_seeds(seeds, env.max_num_agents))

        def play():
            nonlocal observation
            for _ in range(rounds):
                observation = env.step_batch(policy.act(observation)).observation

        benchmark(play)
        return replicas * env.max_num_agents * rounds / benchmark.stats["median"]

    return timed
