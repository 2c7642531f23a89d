"""A small environment that releases what it is told to: a fixed vector in each round, in two arrays."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.core.actions import OwnActions
from fedbandit_envs.core.privacy import Change, Sensitivity
from fedbandit_envs.core.problem import Problem


class ValuesEnv(Problem, name="values"):
    """Every round adds ``values`` to the statistics ``first`` (all but the last number) and ``last``."""

    statistics = ("first", "last")

    def __init__(self, values=(3.0, 4.0, 12.0), event_norm=1.0, num_agents=2, max_cycles=50):
        self.values, self.event_norm = np.asarray(values, np.float64), event_norm
        shapes = {"first": (len(self.values) - 1,), "last": (1,)}
        super().__init__(
            num_agents=num_agents,
            max_cycles=max_cycles,
            observation={
                f"total_{name}": spaces.Box(-np.inf, np.inf, shape, np.float64)
                for name, shape in shapes.items()
            },
            hidden={},
            action_formats={"only": OwnActions(spaces.Discrete(1))},
        )

    def _start(self, randomness, instance_seeds):
        pass

    def _play_round(self, action):
        self._observation["total_first"] += self.values[:-1]
        self._observation["total_last"] += self.values[-1:]

    def _sensitivity(self):
        scale = {name: np.ones_like(self._observation[f"total_{name}"]) for name in self.statistics}
        return Sensitivity(scale, {"one-round": Change(len(self.values), self.event_norm)})

    def _hidden(self):
        return {}


class Two(ValuesEnv, name="two values"):
    def __init__(self, num_agents=2, max_cycles=50):
        super().__init__((1.0, 1.0), num_agents=num_agents, max_cycles=max_cycles)
