"""Speed of continual release in CPU time, single thread: `OMP_NUM_THREADS=1 pytest benchmarks --benchmark-only`.

Every round is a first one: it wraps, fits, plans for another number of releases and promises another epsilon, so that
no answer of an earlier round is found again. Kernels alone are compiled beforehand.
"""

import pickle
import time
from itertools import count

import numpy as np
import pytest
from sums_env import SumsEnv

from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES


def release_often(benchmark, mechanism, replicas, agents, releases, rounds):
    """Times all releases of everyone, an 11 x 11 statistic each."""
    everyone = np.ones((replicas, agents), np.bool_)

    def release(planned):
        env = ContinualPrivatizer(SumsEnv(agents, 11, max_cycles=planned), 1 + planned / 1e9, 0.1, mechanism)
        env.reset_batch(range(replicas))
        for _ in range(planned):
            env.release(everyone)
        return env

    release(100)
    turn = count(releases)
    env = benchmark.pedantic(release, setup=lambda: ((next(turn),), {}), rounds=rounds)
    benchmark.extra_info["microseconds a release of all"] = 1e6 * benchmark.stats["median"] / releases
    benchmark.extra_info["kB in the end"] = len(pickle.dumps(env)) / 1000


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("mechanism", list(NOISES))
def test_a_thousand_releases(benchmark, mechanism):
    """20 replicas of 10 agents."""
    release_often(benchmark, mechanism, 20, 10, 1000, rounds=5)


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("mechanism", ["blt", "tree", "honaker"])
@pytest.mark.parametrize("releases", [1000, 100_000])
def test_many_releases_of_ten_agents(benchmark, mechanism, releases):
    """Neither time a release nor memory must grow."""
    release_often(benchmark, mechanism, 1, 10, releases, rounds=1)
