"""What a process of its own costs a submitted policy: `pytest benchmarks/bench_sandbox.py --benchmark-only`.

Run it with ``OMP_NUM_THREADS=1``. Episodes with such a process take turns with episodes without; the extra time is the
difference of medians of single rounds, in wall-clock time: most of it is sleep, which CPU time does not show.
"""

from time import perf_counter

import numpy as np
import pytest

from fedbandit_envs.leaderboard.sandbox import SandboxedPolicy
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds

ROUNDS = 2000
SOURCE = """
import numpy as np

class BuyWhatPaid:
    def reset(self, spaces, seeds):
        pass

    def act(self, observation):
        pays = observation["total_good"] >= observation["cost"] * observation["total_delivered"]
        return np.where(pays, observation["capacity"], 0)
"""


def rounds_of(env, policy, replicas, rounds):
    """Seconds of each round."""
    observation = env.reset_batch(range(replicas)).observation
    policy.reset(env.policy_spec, row_seeds(range(replicas), 10))
    seconds = np.empty(rounds)
    for round_ in range(rounds):
        before = perf_counter()
        observation = env.step_batch(policy.act(observation)).observation
        seconds[round_] = perf_counter() - before
    return seconds[10:]


@pytest.mark.parametrize("replicas", [1, 20, 100])
def test_a_child_beside_no_child(benchmark, tmp_path, replicas):
    """Procurement with ten agents and 30 producers; asked: at most 150 microseconds a round more at 20 replicas."""
    path = tmp_path / "policy.py"
    path.write_text(SOURCE)
    names = {}
    exec(SOURCE, names)
    env = parallel_env(max_cycles=10**6)
    rounds = ROUNDS if replicas <= 20 else ROUNDS // 5
    here, there = [], []
    with SandboxedPolicy(str(path)) as child:

        def play():
            here.append(rounds_of(env, names["BuyWhatPaid"](), replicas, rounds))
            there.append(rounds_of(env, child, replicas, rounds))

        benchmark.pedantic(play, rounds=5)
    more = [
        np.median(with_child) - np.median(without) for with_child, without in zip(there, here, strict=True)
    ]
    benchmark.extra_info["microseconds a round without"] = round(1e6 * np.median(np.concatenate(here)), 1)
    benchmark.extra_info["microseconds a round more"] = round(1e6 * float(np.median(more)), 1)


def test_a_start(benchmark, tmp_path):
    """Until the first action is there: an interpreter, numpy, numba and this package are imported."""
    path = tmp_path / "policy.py"
    path.write_text(SOURCE)
    env = parallel_env(max_cycles=10)

    def start():
        with SandboxedPolicy(str(path)) as child:
            rounds_of(env, child, 1, 1)

    benchmark.pedantic(start, rounds=3)
