"""PPO in one file, in the manner of CleanRL, on the native vector environment: `python examples/ppo_single_file.py`.

One learning agent among peers, on arms it has not seen; only torch is needed besides this package.
"""

import argparse
from collections.abc import Sequence

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import fedbandit_envs  # noqa: F401 - registers the environments
from fedbandit_envs import make_federation
from fedbandit_envs.baselines.adapters import PredictPolicy
from fedbandit_envs.baselines.arms import UniformArms
from fedbandit_envs.experiments import simulate

ROUNDS, COPIES, LENGTH = 100, 16, 50
GAMMA, LAMBDA, CLIP, EPOCHS, BATCHES = 0.99, 0.9, 0.2, 4, 4
HELD_OUT = range(1_000_000, 1_000_020)


Rollout = dict[str, torch.Tensor]
"""What was kept of rounds, by name, ``(rounds, copies, ...)``."""


class Agent(nn.Module):
    """A policy and a value on features."""

    def __init__(self, inputs: int, arms: int) -> None:
        """Makes two small networks."""
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, arms))
        self.critic = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 1))

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Returns the likeliest arms, as adapters want to have them."""
        with torch.no_grad():
            return self.actor(torch.from_numpy(features)).argmax(dim=1).numpy()


def collect(env: gym.vector.VectorEnv, agent: Agent, seen: torch.Tensor) -> tuple[Rollout, torch.Tensor]:
    """Plays a stretch of rounds; a truncated round's value target looks at the observation that ended it."""
    names = ("seen", "arm", "log", "value", "reward", "next", "over")
    kept: dict[str, list[torch.Tensor]] = {name: [] for name in names}
    for _ in range(LENGTH):
        with torch.no_grad():
            law, value = Categorical(logits=agent.actor(seen)), agent.critic(seen)[:, 0]
        arm = law.sample()
        observation, reward, _, truncated, info = env.step(arm.numpy())
        after = np.stack(info["final_obs"]) if truncated.any() else observation
        with torch.no_grad():
            following = agent.critic(torch.from_numpy(after))[:, 0]
        row = (seen, arm, law.log_prob(arm), value, reward, following, truncated)
        for name, part in zip(kept, row, strict=True):
            kept[name].append(torch.as_tensor(part, dtype=torch.int64 if name == "arm" else torch.float32))
        seen = torch.from_numpy(observation)
    return {name: torch.stack(parts) for name, parts in kept.items()}, seen


def advantages(data: Rollout) -> torch.Tensor:
    """Returns generalised advantages (Schulman et al. 2016); sums stop where an episode is over."""
    delta = data["reward"] + GAMMA * data["next"] - data["value"]
    result = torch.zeros_like(delta)
    later = torch.zeros(delta.shape[1])
    for t in reversed(range(LENGTH)):
        later = delta[t] + GAMMA * LAMBDA * (1 - data["over"][t]) * later
        result[t] = later
    return result


def learn(agent: Agent, optimizer: torch.optim.Optimizer, data: Rollout) -> None:
    """Takes PPO's clipped steps on what was collected."""
    advantage = advantages(data)
    target = (advantage + data["value"]).flatten()
    advantage = (advantage - advantage.mean()).flatten() / (advantage.std() + 1e-8)
    flat = {name: part.flatten(0, 1) for name, part in data.items()}
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(target)).chunk(BATCHES):
            law = Categorical(logits=agent.actor(flat["seen"][rows]))
            ratio = (law.log_prob(flat["arm"][rows]) - flat["log"][rows]).exp()
            gain = torch.min(ratio * advantage[rows], ratio.clamp(1 - CLIP, 1 + CLIP) * advantage[rows])
            error = agent.critic(flat["seen"][rows])[:, 0] - target[rows]
            loss = -gain.mean() + 0.5 * error.square().mean() - 0.01 * law.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Trains and scores; returns regret per agent by name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="of all copies together")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    env = gym.make_vec(
        "FedArms-v0",
        num_envs=COPIES,
        features=True,
        max_cycles=ROUNDS,
        num_agents=2,
        autoreset_mode="SameStep",
    )
    agent = Agent(env.single_observation_space.shape[0], int(env.single_action_space.n))
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
    seen = torch.from_numpy(env.reset(seed=0)[0])
    for update in range(max(1, options.steps // (COPIES * LENGTH))):
        data, seen = collect(env, agent, seen)
        learn(agent, optimizer, data)
        if update % 50 == 0:
            print(f"update {update}: reward a round {data['reward'].mean():.3f}")

    federation = make_federation("FedArms-v0", num_agents=2, max_cycles=ROUNDS)
    policies = {"PPO": PredictPolicy(agent), "uniform": UniformArms()}
    regret = {
        name: float(simulate(federation, policy, HELD_OUT).regret[-1].mean())
        for name, policy in policies.items()
    }
    for name, mean in regret.items():
        print(f"regret per agent of {name} after {ROUNDS} rounds: {mean:.1f}")
    return regret


if __name__ == "__main__":
    main()
