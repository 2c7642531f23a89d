"""An environment that releases floating-point sums: outer products of its actions, and their number."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.core.actions import OwnActions
from fedbandit_envs.core.privacy import Change, Sensitivity
from fedbandit_envs.core.problem import MOST, Problem


class Regression(Problem, name="regression"):
    """Observes the vector that is its action, and releases the sum of the outer products and their number."""

    statistics = ("statistic", "count")

    def __init__(self, num_agents=2, max_cycles=60):
        super().__init__(
            num_agents=num_agents,
            max_cycles=max_cycles,
            observation={
                "total_statistic": spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
                "total_count": spaces.Box(0, MOST, (1,), np.int64),
            },
            hidden={},
            action_formats={"vector": OwnActions(spaces.Box(-9, 9, (2,), np.float64))},
        )

    def _start(self, randomness, instance_seeds):
        pass

    def _play_round(self, action):
        self._observation["total_statistic"][...] += action[..., :, None] * action[..., None, :]
        self._observation["total_count"][...] += 1

    def _sensitivity(self):
        rows = self._reward.shape
        scale = {"statistic": np.full((*rows, 2, 2), 2.0), "count": np.ones((*rows, 1))}
        changes = {"one-observation": Change(4, 1.4), "one-observation-added": Change(4, 1.0)}
        return Sensitivity(scale, changes, symmetric=True)

    def _hidden(self):
        return {}
