"""Speed of exposure fairness in CPU time, single thread: `OMP_NUM_THREADS=1 pytest benchmarks --benchmark-only`.

Ten agents, ten arms, d = 5, contexts drawn afresh in every round, three steps of the solver; each benchmark prints
agent-rounds per CPU-second.
"""

import time

import pytest

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.exposure_v0 import parallel_env

# That of the thesis, on which schedules hang.
HORIZON = 100_000


@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize(
    ("name", "replicas"),
    [
        ("equal-shares", 100),
        ("FairX-LinUCB", 5),
        ("FairX-LinUCB", 20),
        ("FairX-LinUCB", 100),
        ("Fed-FairX-LinUCB", 20),
        ("Priv-FairX-LinUCB", 20),
        ("Priv-FairX-weighted", 20),
    ],
)
def test_a_baseline_through_the_array_face(benchmark, throughput, name, replicas):
    """Policy, wrappers and environment together, in the middle of an episode."""
    rounds = 40_000 // (10 * replicas)
    baseline = BASELINES[name]
    env = baseline.wrap(parallel_env(max_cycles=HORIZON))
    speed = throughput(env, baseline.make_policy(), replicas, rounds)
    benchmark.extra_info["agent-rounds per CPU-second"] = speed
