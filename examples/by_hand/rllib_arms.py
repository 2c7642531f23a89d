"""Trains agents that share a network with Ray RLlib's PPO, through its PettingZoo wrapper.

No test runs it: RLlib pins another Gymnasium than `constraints.txt`. It was run by hand under Python 3.11.7 with ray
2.60.0, gymnasium 1.2.2, pettingzoo 1.27.0, torch 2.13.0 and numpy 2.4.6, on Linux, once:

    unshare -n bash -c 'ip link set lo up; python examples/by_hand/rllib_arms.py'

    iteration 0: reward a round and agent 0.496
    iteration 1: reward a round and agent 0.515
    iteration 2: reward a round and agent 0.546
    iteration 3: reward a round and agent 0.511
    regret per agent of RLlib after 100 rounds: 16.8
    regret per agent of UCB1 after 100 rounds: 16.7
    regret per agent of uniform after 100 rounds: 30.7

`docs/learning.md` says how to install it, and why it has a network of its own (`unshare`, as root).
"""

import argparse
import logging
import os
from collections.abc import Sequence

# Before ray is imported: it reports how it is used unless it is told not to.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module import RLModule
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

from fedbandit_envs import arms_v0, make_federation
from fedbandit_envs.baselines.adapters import PredictPolicy
from fedbandit_envs.baselines.arms import UCB1, UniformArms
from fedbandit_envs.experiments import simulate

AGENTS, ARMS, ROUNDS = 4, 5, 100
ENVIRONMENT, SHARED = "fedbandit_arms", "shared"
# Seeds of scoring are far from the one of training.
HELD_OUT = range(1_000_000, 1_000_020)


class Likeliest:
    """What RLlib has learned, as adapters want to have it: the likeliest arms, without exploration."""

    def __init__(self, module: RLModule) -> None:
        """Takes the shared module."""
        self._module = module

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Returns arms ``(rows,)`` for features ``(rows, entries)``."""
        with torch.no_grad():
            answer = self._module.forward_inference({Columns.OBS: torch.from_numpy(features)})
        return answer[Columns.ACTION_DIST_INPUTS].argmax(dim=1).numpy()


def configuration() -> PPOConfig:
    """Says what is trained: one module for all agents, in this process."""
    register_env(
        ENVIRONMENT,
        lambda _: ParallelPettingZooEnv(
            arms_v0.parallel_env(
                num_agents=AGENTS, num_arms=ARMS, max_cycles=ROUNDS, features=True, action_format="arm"
            )
        ),
    )
    return (
        PPOConfig()
        .environment(ENVIRONMENT)
        .env_runners(num_env_runners=0)
        .multi_agent(policies={SHARED}, policy_mapping_fn=lambda agent, episode, **_: SHARED)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], vf_share_layers=False))
        .training(
            lr=1e-3, gamma=0.99, lambda_=0.9, entropy_coeff=0.01, num_epochs=4,
            # Counted in rounds of the federation; a minibatch in rows, one an agent and round.
            train_batch_size_per_learner=1000, minibatch_size=500,
        )
        .debugging(seed=0, log_level="ERROR")
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Trains and scores; returns regret per agent by name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=4, help="of 1000 rounds each")
    options = parser.parse_args(arguments)

    ray.init(
        address="local", num_cpus=1, include_dashboard=False, _node_ip_address="127.0.0.1",
        logging_level=logging.ERROR, object_store_memory=100_000_000,
    )  # fmt: skip
    try:
        algorithm = configuration().build_algo()
        try:
            for iteration in range(options.iterations):
                result = algorithm.train()
                # RLlib adds up what all agents of the module were paid.
                total = result["env_runners"]["module_episode_returns_mean"][SHARED]
                print(f"iteration {iteration}: reward a round and agent {total / (AGENTS * ROUNDS):.3f}")
            federation = make_federation("FedArms-v0", num_agents=AGENTS, num_arms=ARMS, max_cycles=ROUNDS)
            policies = {
                "RLlib": PredictPolicy(Likeliest(algorithm.get_module(SHARED)), action_format="arm"),
                "UCB1": UCB1(),
                "uniform": UniformArms(),
            }
            regret = {
                name: float(simulate(federation, policy, HELD_OUT).regret[-1].mean())
                for name, policy in policies.items()
            }
        finally:
            algorithm.stop()
    finally:
        ray.shutdown()
    for name, mean in regret.items():
        print(f"regret per agent of {name} after {ROUNDS} rounds: {mean:.1f}")
    return regret


if __name__ == "__main__":
    main()
