"""The placebo wrapper: messages are sent as usual, but contain zeros instead of data."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.wrapper import FederatedWrapper


class Placebo(FederatedWrapper):
    """A wrapper that replaces all data in releases by zeros; the times of the releases stay the same.

    If a privatizer is wrapped around it, agents receive only the privatizer's noise. Whatever a policy still gains from
    messages under this wrapper does not come from the data in them.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Placebo(parallel_env(num_agents=2))
        >>> reset, step = env.reset_batch([0]), env.step_batch(np.zeros((1, 2), np.int64))
        >>> int(env.release(np.ones((1, 2), bool))["pulls"].sum())
        0
    """

    layer = "data"

    def _release(self, sends: Array) -> Arrays:
        return {name: np.zeros_like(array) for name, array in self.env._release(sends).items()}
