"""SB3's algorithms bootstrap where the horizon cuts an episode."""

import numpy as np
import pytest
from registered import two_agents

from fedbandit_envs.views import to_sb3

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import DQN, PPO

ARMS = "FedArms-v0"


def test_truncated_episodes_bootstrap_on_policy():
    """The value target of a horizon's last round is its reward and what the last observation is worth."""
    env = to_sb3(two_agents(ARMS, max_cycles=3), replicas=2)
    model = PPO("MlpPolicy", env, n_steps=6, batch_size=12, gamma=0.9, seed=0, device="cpu")
    last, rewards = [], []
    step_wait = env.step_wait

    def watched():
        seen, reward, done, infos = step_wait()
        rewards.append(reward.copy())  # SB3 adds to it
        last.append(np.stack([info["terminal_observation"] for info in infos]) if done.all() else None)
        return seen, reward, done, infos

    env.step_wait = watched
    _, callback = model._setup_learn(24)
    model.collect_rollouts(env, callback, model.rollout_buffer, 6)
    for place in (2, 5):
        worth = model.policy.predict_values(torch.as_tensor(last[place])).detach().numpy().ravel()
        assert np.abs(worth).min() > 1e-3
        target = rewards[place] + 0.9 * worth
        np.testing.assert_allclose(model.rollout_buffer.returns[place], target, rtol=1e-5)


def test_truncated_episodes_bootstrap_off_policy():
    """No transition is learned as the last one, and what follows the last round is the episode's own observation."""
    env = to_sb3(two_agents(ARMS, max_cycles=3), replicas=2)
    model = DQN("MlpPolicy", env, seed=0, device="cpu", learning_starts=100)
    model.learn(24)
    stored = model.replay_buffer
    np.testing.assert_array_equal(stored.dones[:6, 0], [0, 0, 1] * 2)
    np.testing.assert_array_equal(stored.timeouts[:6], stored.dones[:6])
    assert not stored.sample(50).dones.any()
    # Time left is the last feature: 1 before the first round, -1 after the last.
    assert (stored.next_observations[[2, 5], :, -1] == -1).all()
    assert (stored.observations[[0, 3], :, -1] == 1).all()
