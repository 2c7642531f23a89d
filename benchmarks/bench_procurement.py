"""Speed of procurement in CPU time, single thread: `OMP_NUM_THREADS=1 pytest benchmarks --benchmark-only`.

Each benchmark prints what it is about as `extra_info`: agent-rounds or rounds per CPU-second.
"""

import resource
import time

import pytest

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.procurement import SSUCB
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds


@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize(
    ("name", "replicas"),
    [("SS-UCB", 20), ("SS-UCB", 50), ("SS-UCB", 100), ("P-FCB", 20), ("FCB-every-round", 20)],
)
def test_a_baseline_through_the_array_face(benchmark, throughput, name, replicas):
    """Ten agents, 30 producers: policy, wrappers and environment together."""
    rounds = 60_000 // replicas
    baseline = BASELINES[name]
    env = baseline.wrap(parallel_env(max_cycles=10**9))
    speed = throughput(env, baseline.make_policy(), replicas, rounds)
    benchmark.extra_info["million agent-rounds per CPU-second"] = speed / 1e6


def test_memory_is_flat_in_the_horizon(benchmark):
    """Peak resident memory of the process before and after 2e5 rounds more; fails if it grew by over 1 MiB."""
    env, policy = parallel_env(max_cycles=10**9), SSUCB()
    observation = env.reset_batch(range(20)).observation
    policy.reset(env.policy_spec, row_seeds(range(20), 10))

    def play(rounds):
        nonlocal observation
        for _ in range(rounds):
            observation = env.step_batch(policy.act(observation)).observation

    play(2000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    benchmark.pedantic(play, args=(200_000,), rounds=1)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    benchmark.extra_info["KiB grown over 200,000 rounds"] = grown
    assert grown < 1024
