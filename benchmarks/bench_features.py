"""What features cost in CPU time: `OMP_NUM_THREADS=1 pytest benchmarks/bench_features.py --benchmark-only`.

Steps of 4 replicas of ten agents, 40 rows; each benchmark prints microseconds of CPU a step, raw and with features.
"""

import time

import pytest

from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing.episodes import random_choices
from fedbandit_envs.views.control import Rows
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer

FORMATS = {
    "FedProcurement-v0": "index",
    "FedArms-v0": "values",
    "FedLinear-v0": "arm",
    "FedExposure-v0": "logits",
}
STACKS = {
    "alone": lambda env: env,
    "channel": Channel,
    "noise": lambda env: Channel(GaussianPrivatizer(env, epsilon_per_release=1.0, on_exhausted="silence")),
}
ROUNDS = 100


@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize("features", [False, True], ids=["raw", "features"])
@pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS.keys())
@pytest.mark.parametrize("env_id", FORMATS)
def test_a_step_of_40_rows(benchmark, env_id, stack, features):
    rows = Rows(
        stack(make_federation(env_id, max_cycles=100_000)), action_format=FORMATS[env_id], features=features
    )
    choices = random_choices(rows.action_space, (4, 10), rounds=ROUNDS)
    rows.reset(range(4))

    def play():
        for choice in choices:
            rows.step(choice)

    benchmark(play)
    benchmark.extra_info["microseconds a step"] = benchmark.stats["median"] / ROUNDS * 1e6
