"""What weighing by known noise costs, in CPU time: `OMP_NUM_THREADS=1 pytest benchmarks --benchmark-only`.

Each benchmark plays episodes of two baselines in turn, with the same seeds, and prints the throughput of the one that
weighs over that of the other. Episodes are short, so that messages are more frequent than at the papers' horizons.
"""

import time

import numpy as np
import pytest

from fedbandit_envs import make_federation
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.experiments.simulate import simulate


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(
    ("weighs", "other", "env_id", "rounds"),
    [
        ("P-FCB-weighted", "P-FCB", "FedProcurement-v0", 5000),
        ("FedUCB-weighted", "FedUCB-min", "FedLinear-v0", 300),
        ("FedUCB-weighted", "FedUCB", "FedLinear-v0", 300),
        ("Priv-FairX-weighted", "FairX-tuned", "FedExposure-v0", 2000),
        ("UCB1-weighted", "Priv-UCB1", "FedArms-v0", 5000),
    ],
)
def test_weighing_beside_what_it_weighs_for(benchmark, weighs, other, env_id, rounds):
    """Ten agents, five replicas."""
    seconds = {weighs: [], other: []}

    def play():
        for name, taken in seconds.items():
            env = BASELINES[name].wrap(make_federation(env_id, max_cycles=rounds))
            policy = BASELINES[name].make_policy()
            start = time.process_time()
            simulate(env, policy, range(5))
            taken.append(time.process_time() - start)

    benchmark.pedantic(play, rounds=5, warmup_rounds=1)
    benchmark.extra_info["throughput over the other's"] = float(
        np.median(seconds[other][1:]) / np.median(seconds[weighs][1:])
    )
