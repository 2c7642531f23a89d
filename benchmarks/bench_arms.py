"""Speed of Bernoulli arms in CPU time, single thread: `OMP_NUM_THREADS=1 pytest benchmarks --benchmark-only`.

Each benchmark prints agent-rounds per CPU-second, the vertical federation its rounds.
"""

import time

import pytest

from fedbandit_envs.arms.ratings import packaged_means
from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.samba.owners import Algorithm, run_vertical

ROUNDS = 100_000


@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize(
    ("name", "arms"),
    [
        ("UCB1", 10),
        ("UCB1", 100),
        ("epsilon-greedy", 10),
        ("Thompson", 10),
        ("Softmax", 10),
        ("Pursuit", 10),
        ("Fed-UCB1", 10),
        ("Priv-UCB1", 10),
    ],
)
def test_a_baseline_through_the_array_face(benchmark, throughput, name, arms):
    """Policy, wrappers and environment together: 200 replicas of ten agents, 100 rounds of an episode of 1e5."""
    baseline = BASELINES[name]
    env = baseline.wrap(parallel_env(num_arms=arms, max_cycles=ROUNDS))
    speed = throughput(env, baseline.make_policy(), 200, 100)
    benchmark.extra_info["agent-rounds per CPU-second"] = speed


@pytest.mark.benchmark(timer=time.process_time, min_rounds=3, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize("algorithm", ["ucb", "thompson", "epsilon-greedy", "softmax", "pursuit"])
def test_the_vertical_federation(benchmark, algorithm):
    """MovieLens, 100 owners, in the open, 10,000 rounds."""
    means = packaged_means("movielens")

    benchmark(run_vertical, means, Algorithm(algorithm), 10_000, seed=0)
    benchmark.extra_info["rounds per CPU-second"] = 10_000 / benchmark.stats["median"]
