"""The placebo of sharing: messages that carry nothing."""

import numpy as np

from fedbandit_envs.federation import Array, Arrays, FederatedWrapper


class Placebo(FederatedWrapper):
    """Releases zeros in place of data, at the times and with the noise of the real thing.

    Inside a privatizer, what agents receive is its noise alone. A gain that survives this wrapper is not owed to
    what agents tell each other.
    """

    def release(self, senders: Array) -> Arrays:
        """Returns zeros in the shape of the data, which stays where it is."""
        return {name: np.zeros_like(array) for name, array in self.env.release(senders).items()}
