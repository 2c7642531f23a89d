"""Trains Stable-Baselines3's PPO with its default settings on raw procurement, and compares it with random actions.

`docs/learning.md` has what it printed. No test runs it: it takes six CPU minutes.
"""

import time

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO

from fedbandit_envs.experiments.measures import mean_with_interval

STEPS = 40 * 2048  # rollouts of PPO
HELD_OUT = range(1_000, 1_020)


def play(env, act):
    """Returns an episode's regret and reward for each held-out seed."""
    totals = np.zeros((len(HELD_OUT), 2))
    for row, seed in zip(totals, HELD_OUT, strict=True):
        seen, _ = env.reset(seed=seed)
        env.action_space.seed(seed)
        over = False
        while not over:
            seen, reward, _, over, info = env.step(act(seen))
            row += info["regret"], reward
    return totals


torch.set_num_threads(1)
env = gym.make("FedProcurement-v0")
model = PPO("MultiInputPolicy", env, seed=0, device="cpu")
policies = {
    "random": lambda seen: env.action_space.sample(),
    "PPO": lambda seen: model.predict(seen)[0],
    "PPO, most likely action": lambda seen: model.predict(seen, deterministic=True)[0],
}
began = time.process_time()
model.learn(STEPS)
print(f"{STEPS:,} steps took {time.process_time() - began:.0f} CPU seconds")
played = {name: play(env, act) for name, act in policies.items()}
for name, totals in played.items():
    for what, mine, rival in zip(("regret", "reward"), totals.T, played["random"].T, strict=True):
        print("{} of {}: {:,.0f} [{:,.0f}, {:,.0f}]".format(what, name, *mean_with_interval(mine)))
        if name != "random":
            print("  less random: {:,.0f} [{:,.0f}, {:,.0f}]".format(*mean_with_interval(mine - rival)))
print(f"all took {time.process_time() - began:.0f} CPU seconds")
