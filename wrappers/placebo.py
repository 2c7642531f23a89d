"""The placebo of communication: messages emptied of data."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.wrapper import FederatedWrapper


class Placebo(FederatedWrapper):
    """A wrapper that releases zeros in place of data, at the same times.

    Inside of a privatizer, agents then receive its noise alone. Whatever a policy still gains from messages under this
    wrapper does not come from their data.

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
