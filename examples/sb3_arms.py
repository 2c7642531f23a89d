"""Trains an agent of Stable-Baselines3 on Bernoulli arms, and scores it beside UCB1: `python examples/sb3_arms.py`.

One network plays all agents of all replicas. `--steps` says for how long.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stable_baselines3 import PPO

from fedbandit_envs import make_federation
from fedbandit_envs.baselines.adapters import SB3Policy
from fedbandit_envs.baselines.arms import UCB1, UniformArms
from fedbandit_envs.experiments import simulate
from fedbandit_envs.views import to_sb3

ROUNDS = 200
# Seeds of scoring are far from those of training, which go up from 0.
HELD_OUT = range(1_000_000, 1_000_020)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Trains and scores; returns regret per agent by name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="of all rows together")
    parser.add_argument("--save", type=Path, help="where the model is to stay")
    options = parser.parse_args(arguments)

    env = to_sb3(make_federation("FedArms-v0", max_cycles=ROUNDS), replicas=8)
    model = PPO(
        "MlpPolicy", env, n_steps=100, batch_size=1000, gamma=1.0, ent_coef=0.01, seed=0, device="cpu"
    ).learn(options.steps)

    with tempfile.TemporaryDirectory() as folder:
        path = options.save or Path(folder) / "ppo_arms.zip"
        model.save(path)
        # From the file, as another process would have it; `fedbandit run` takes the same two arguments by --set.
        policies = {"PPO": SB3Policy(path, algorithm="PPO"), "UCB1": UCB1(), "uniform": UniformArms()}
    federation = make_federation("FedArms-v0", max_cycles=ROUNDS)
    regret = {
        name: float(simulate(federation, policy, HELD_OUT).regret[-1].mean())
        for name, policy in policies.items()
    }
    for name, mean in regret.items():
        print(f"regret per agent of {name} after {ROUNDS} rounds: {mean:.1f}")
    return regret


if __name__ == "__main__":
    main()
