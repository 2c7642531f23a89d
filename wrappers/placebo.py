"""The placebo of sharing: messages that carry nothing."""

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.wrapper import FederatedWrapper


class Placebo(FederatedWrapper):
    """Releases zeros in place of data, at the times and with the noise of the real thing.

    Inside a privatizer, what agents receive is its noise alone. A gain that survives this wrapper is not owed to
    what agents tell each other.
    """

    layer = "data"

    def _release(self, sends: Array) -> Arrays:
        return {name: np.zeros_like(array) for name, array in self.env._release(sends).items()}
