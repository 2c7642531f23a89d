"""An environment that releases floating-point sums: outer products of its actions, and their number."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.sensitivity import Change, Sensitivity


class Regression(FederatedEnv):
    """Observes the vector that is its action, and releases the sum of the outer products and their number."""

    metadata = {"name": "regression", "is_parallelizable": True}  # noqa: RUF012 - PettingZoo's own form

    def __init__(self, num_agents=2, max_cycles=60):
        super().__init__()
        self.possible_agents = [f"agent_{j}" for j in range(num_agents)]
        self.max_cycles = max_cycles
        self.action_formats = {}
        self.single_action_space = spaces.Box(-9, 9, (2,), np.float64)
        self.single_observation_space = spaces.Dict({"round": spaces.Box(0, 2**53, (1,), np.int64)})
        self.single_release_space = spaces.Dict(
            {
                "statistic": spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
                "count": spaces.Box(0, 2**53, (1,), np.int64),
            }
        )

    def reset_batch(self, seeds):
        rows = (len(seeds), self.max_num_agents)
        self.rows, self.round, self._has_released = rows, 0, False
        self.pending = {"statistic": np.zeros((*rows, 2, 2)), "count": np.zeros((*rows, 1), np.int64)}
        return BatchReset({"round": np.zeros((*rows, 1), np.int64)}, {})

    def step_batch(self, action):
        if action.shape != (*self.rows, 2):
            raise ValueError("action has a bad shape")
        self.round += 1
        self.pending["statistic"] += action[..., :, None] * action[..., None, :]
        self.pending["count"] += 1
        over = np.full(self.rows, self.round == self.max_cycles)
        observation = {"round": np.full((*self.rows, 1), self.round)}
        return BatchStep(observation, np.zeros(self.rows), over, {"regret": np.zeros(self.rows)})

    def release(self, senders):
        self._has_released |= bool(senders.any())
        released = {}
        for name, pending in self.pending.items():
            released[name] = np.zeros_like(pending)
            released[name][senders] = pending[senders]
            pending[senders] = 0
        return released

    def sensitivity(self):
        scale = {"statistic": np.full((*self.rows, 2, 2), 2.0), "count": np.ones((*self.rows, 1))}
        changes = {"one-observation": Change(4, 1.4), "one-observation-added": Change(4, 1.0)}
        return Sensitivity(scale, changes, symmetric=True)

    def hidden(self):
        return {}

    @property
    def hidden_space(self):
        return spaces.Dict({})
