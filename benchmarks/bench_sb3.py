"""What the view for Stable-Baselines3 costs beside learning: `pytest benchmarks/bench_sb3.py --benchmark-only`.

Prints the VecEnv's share of PPO's wall time, collecting and learning together, at 40 rows.
"""

import time

import pytest

from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.views import to_sb3

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import PPO

STEPS = 40 * 128


@pytest.mark.benchmark(min_rounds=3, warmup=True, warmup_iterations=1)
@pytest.mark.parametrize(
    ("env_id", "action_format"),
    [
        ("FedProcurement-v0", "index"),
        ("FedArms-v0", "arm"),
        ("FedLinear-v0", "arm"),
        ("FedExposure-v0", "logits"),
    ],
)
def test_share_of_ppos_time(benchmark, env_id, action_format):
    """Four replicas of ten agents, episodes of 100 rounds, PPO with SB3's own settings but 128 steps a rollout."""
    env = to_sb3(make_federation(env_id, max_cycles=100), action_format, replicas=4)
    spent = {"env": 0.0, "all": 0.0}
    for name in ("reset", "step_wait"):
        setattr(env, name, _timed(getattr(env, name), spent))
    torch.set_num_threads(1)
    model = PPO("MlpPolicy", env, n_steps=128, seed=0, device="cpu")

    def learn():
        start = time.perf_counter()
        model.learn(STEPS, reset_num_timesteps=False)
        spent["all"] += time.perf_counter() - start

    learn()
    spent.update(env=0.0, all=0.0)
    benchmark(learn)
    benchmark.extra_info["rows a second, PPO included"] = STEPS / benchmark.stats["median"]
    benchmark.extra_info["the VecEnv's share of wall time"] = spent["env"] / spent["all"]


def _timed(function, spent):
    def timed(*args):
        start = time.perf_counter()
        result = function(*args)
        spent["env"] += time.perf_counter() - start
        return result

    return timed
