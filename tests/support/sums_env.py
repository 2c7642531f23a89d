"""The smallest environment with a symmetric statistic: every round adds v v^T of a random v, for each agent."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.core.actions import OwnActions
from fedbandit_envs.core.privacy import Change, Sensitivity
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.randomness.streams import Purpose, stream


class SumsEnv(Problem, name="sums"):
    statistics = ("statistic",)

    def __init__(self, num_agents=2, size=3, bound=1.0, max_cycles=50):
        self.size, self.bound = size, bound
        super().__init__(
            num_agents=num_agents,
            max_cycles=max_cycles,
            observation={"total_statistic": spaces.Box(-np.inf, np.inf, (size, size), np.float64)},
            hidden={},
            action_formats={"only": OwnActions(spaces.Discrete(1))},
        )

    @property
    def total(self):
        return self._observation["total_statistic"]

    def _start(self, randomness, instance_seeds):
        self._generators = [stream(seed, Purpose.OUTCOME) for seed in randomness.seeds]

    def _play_round(self, action):
        vectors = np.stack([g.standard_normal(self.total.shape[1:3]) for g in self._generators])
        vectors *= np.sqrt(self.bound) / np.linalg.norm(vectors, axis=-1, keepdims=True)
        self.total[...] += vectors[..., :, np.newaxis] * vectors[..., np.newaxis, :]

    def _sensitivity(self):
        changes = {
            "one-observation": Change(self.size**2, np.sqrt(2)),
            "one-observation-added": Change(self.size**2, 1.0),
        }
        return Sensitivity({"statistic": np.full(self.total.shape, self.bound)}, changes, symmetric=True)

    def _hidden(self):
        return {}
