"""Speed of linear bandits in CPU time, single thread: `OMP_NUM_THREADS=1 pytest benchmarks --benchmark-only`.

Contexts are drawn afresh in every round, K = 100 arms and d = 10; each benchmark prints agent-rounds per CPU-second.
"""

import time

import numpy as np
import pytest

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import Participation

FOREVER = 10**9


@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize(
    ("name", "agents", "replicas"),
    [
        ("LinUCB", 10, 20),
        ("LinUCB", 100, 2),
        ("FedUCB-nonprivate", 100, 2),
        ("FedUCB", 100, 2),
        ("FedUCB-min", 100, 2),
    ],
)
def test_a_baseline_through_the_array_face(benchmark, throughput, name, agents, replicas):
    """Policy, wrappers and environment together, in the middle of an episode."""
    rounds = 20_000 // (agents * replicas)
    baseline = BASELINES[name]
    env = baseline.wrap(parallel_env(num_agents=agents, max_cycles=FOREVER))
    speed = throughput(env, baseline.make_policy(), replicas, rounds)
    benchmark.extra_info["agent-rounds per CPU-second"] = speed


@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize(
    "name",
    [
        "LinUCB",
        "Batched-FedLinUCB",
        "LDP-FedLinUCB-printed",
        "SDP-FedLinUCB-amplified-printed",
        "SDP-FedLinUCB-vector-sum-printed",
        "LDP-FedLinUCB",
        "SecureSum-FedLinUCB",
        "SDP-FedLinUCB-vector-sum",
        "SDP-FedLinUCB-amplified",
        "Central-FedLinUCB",
        "DisLinUCB",
    ],
)
def test_zhou_and_chowdhurys_setting(benchmark, throughput, name):
    """100 agents that synchronise every 25 rounds, or as the baseline says."""
    baseline = BASELINES[name]
    env = baseline.wrap(make_federation("FedLinearSphere-v0", max_cycles=10_000))
    speed = throughput(env, baseline.make_policy(), 2, 100)
    benchmark.extra_info["agent-rounds per CPU-second"] = speed


@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)
def test_the_environment_alone(benchmark):
    """Ten agents, always the first arm: what drawing contexts and rewards costs."""
    env = parallel_env(max_cycles=FOREVER)
    env.reset_batch(range(20))
    action = np.zeros((20, 10), np.int64)

    def play():
        for _ in range(100):
            env.step_batch(action)

    benchmark(play)
    benchmark.extra_info["agent-rounds per CPU-second"] = 20_000 / benchmark.stats["median"]


@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize("law", ["none", "all", "uniform"])
def test_fifty_agents_come_and_go(benchmark, throughput, law):
    """LinUCB, 20 replicas of 50 agents: without a wrapper, with all active, and with one of them a round."""
    env = parallel_env(num_agents=50, max_cycles=FOREVER)
    env = env if law == "none" else Participation(env, law)
    speed = throughput(env, BASELINES["LinUCB"].make_policy(), 20, 20)
    benchmark.extra_info["rounds per CPU-second"] = speed / 50
