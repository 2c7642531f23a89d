"""Speed of continual release in CPU time, single thread: `OMP_NUM_THREADS=1 pytest benchmarks --benchmark-only`."""

import time

import numpy as np
import pytest
from sums_env import SumsEnv

from fedbandit_envs.wrappers.privacy.continual import NOISES, ContinualPrivatizer


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("mechanism", list(NOISES))
def test_a_thousand_releases(benchmark, mechanism):
    """20 replicas of 10 agents, an 11 x 11 statistic."""
    releases = 1000
    env = ContinualPrivatizer(SumsEnv(10, 11, max_cycles=releases), 1.0, 0.1, mechanism)
    everyone = np.ones((20, 10), np.bool_)

    def start():
        env.reset_batch(range(20))

    def release():
        for _ in range(releases):
            env.release(everyone)

    benchmark.pedantic(release, setup=start, rounds=3, warmup_rounds=1)
    benchmark.extra_info["agents' releases per CPU-second"] = (
        releases * everyone.size / benchmark.stats["median"]
    )


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("mechanism", ["tree", "honaker"])
def test_many_releases_of_one_agent(benchmark, mechanism):
    """An 11 x 11 statistic, 1e5 releases: time a release must not grow."""
    releases = 100_000
    env = ContinualPrivatizer(SumsEnv(1, 11, max_cycles=releases), 1.0, 0.1, mechanism)
    everyone = np.ones((1, 1), np.bool_)

    def start():
        env.reset_batch([0])

    def release():
        for _ in range(releases):
            env.release(everyone)

    benchmark.pedantic(release, setup=start, rounds=1)
    benchmark.extra_info["releases per CPU-second"] = releases / benchmark.stats["median"]
