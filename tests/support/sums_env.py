"""The smallest environment with a symmetric statistic: every round adds v v^T of a random v, for each agent."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.sensitivity import Change, Sensitivity
from fedbandit_envs.streams import Purpose, stream


class SumsEnv(FederatedEnv):
    def __init__(self, num_agents=2, size=3, bound=1.0, max_cycles=50):
        super().__init__()
        self.metadata = {"name": "sums"}
        self.size, self.bound, self.max_cycles = size, bound, max_cycles
        self.possible_agents = [f"agent_{j}" for j in range(num_agents)]
        self.single_observation_space = spaces.Dict({"round": spaces.Box(0, np.inf, (1,), np.int64)})
        self.single_action_space = spaces.Discrete(1)
        matrix = spaces.Box(-np.inf, np.inf, (size, size), np.float64)
        self.single_release_space = spaces.Dict({"statistic": matrix})
        self.action_formats = {}

    def reset_batch(self, seeds):
        shape = (len(seeds), len(self.possible_agents))
        self._generators = [stream(seed, Purpose.OUTCOME) for seed in seeds]
        self.total = np.zeros((*shape, self.size, self.size))
        self._released = np.zeros_like(self.total)
        self._round = np.zeros((*shape, 1), np.int64)
        return BatchReset({"round": self._round}, {})

    def step_batch(self, action):
        vectors = np.stack([g.standard_normal(self.total.shape[1:3]) for g in self._generators])
        vectors *= np.sqrt(self.bound) / np.linalg.norm(vectors, axis=-1, keepdims=True)
        self.total += vectors[..., :, np.newaxis] * vectors[..., np.newaxis, :]
        self._round += 1
        zeros = np.zeros(self.total.shape[:2])
        return BatchStep(
            {"round": self._round}, zeros, self._round[..., 0] == self.max_cycles, {"regret": zeros}
        )

    def release(self, senders):
        grown = np.where(np.asarray(senders)[..., np.newaxis, np.newaxis], self.total - self._released, 0.0)
        self._released += grown
        return {"statistic": grown}

    def sensitivity(self):
        changes = {
            "one-observation": Change(self.size**2, np.sqrt(2)),
            "one-observation-added": Change(self.size**2, 1.0),
        }
        return Sensitivity({"statistic": np.full(self.total.shape, self.bound)}, changes, symmetric=True)

    @property
    def hidden_space(self):
        return spaces.Dict({})

    def hidden(self):
        return {}
