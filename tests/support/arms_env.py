"""A federated Bernoulli bandit, the smallest problem there is: what an environment must say for itself, and no more."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.privacy import Change, Pair, Sensitivity
from fedbandit_envs.core.problem import MOST, Problem
from fedbandit_envs.randomness.draws import Draws
from fedbandit_envs.randomness.streams import Purpose, row_keys


class Arm:
    """An arm's index, the environment's own action."""

    def __init__(self, num_arms):
        self.space = spaces.Discrete(num_arms)

    def to_action(self, choice, observation):
        return choice


class ArmsEnv(Problem, name="arms_v0"):
    """In every round each agent pulls one of K arms, which succeeds with a probability that is the same for all agents.

    A success pays 1. Agents see how often they have pulled each arm, and with how many successes.
    """

    statistics = ("pulls", "successes")

    def __init__(self, num_agents=3, num_arms=4, max_cycles=100, instance_seed=None):
        require_integer("num_arms", num_arms, 1)
        counts = spaces.Box(0, MOST, (num_arms,), np.int64)
        super().__init__(
            num_agents=num_agents,
            max_cycles=max_cycles,
            observation={"total_pulls": counts, "total_successes": counts},
            hidden={"mean": spaces.Box(0.0, 1.0, (num_arms,), np.float64)},
            action_formats={"arm": Arm(num_arms)},
            instance_seed=instance_seed,
        )

    def _start(self, randomness, instance_seeds):
        arms = self._observation["total_pulls"].shape[2]
        keys = row_keys(instance_seeds, 1, Purpose.PARAMETER)
        self._mean = Draws(keys, np.zeros(keys.shape[:2], np.uint32)).uniforms(arms)[:, 0]
        self._outcomes = randomness.draws(Purpose.OUTCOME)

    def _play_round(self, action):
        # Random numbers for every arm, whichever is pulled, so that policies under one seed meet the same.
        good = self._outcomes.uniforms(self._mean.shape[1]) < self._mean[:, np.newaxis]
        pulled = (np.arange(self._mean.shape[1]) == action[..., np.newaxis]) & self._active[..., np.newaxis]
        self._observation["total_pulls"] += pulled
        self._observation["total_successes"] += pulled & good
        self._reward[...] = (pulled & good).any(axis=-1)
        means = (self._mean[:, np.newaxis] * pulled).sum(axis=-1)
        self._info["regret"][...] = (self._mean.max(axis=-1, keepdims=True) - means) * self._active

    def _largest_reward(self):
        return np.ones(self._reward.shape)

    def _sensitivity(self):
        ones = np.ones(self._observation["total_pulls"].shape)
        one, two, four = Change(1, 1.0), Change(2, np.sqrt(2)), Change(4, 2.0)
        # Another arm pulled moves a pull, and a success at most, from one arm to another: that is one good or defective
        # outcome less here, and one more there. Another outcome makes a good one defective.
        return Sensitivity(
            {"pulls": ones, "successes": ones.copy()},
            {"one-observation": four, "one-outcome": one},
            pair=Pair("pulls", "successes", {"one-observation": two, "one-outcome": two}),
        )

    def _hidden(self):
        return {
            "mean": np.broadcast_to(self._mean[:, np.newaxis], self._observation["total_pulls"].shape).copy()
        }
