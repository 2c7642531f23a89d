"""A limit on how often agents may speak."""

from collections.abc import Sequence

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_integer
from fedbandit_envs.federation import BatchReset, FederatedEnv
from fedbandit_envs.wrapper import FederatedWrapper


class Quota(FederatedWrapper):
    """Lets each agent release so often in an episode, and then no more, silently: with 0 the federation is silent.

    A release is counted once, to however many it goes.
    """

    layer = "data"
    # Enough for all that conformance has an agent release.
    examples = ({"releases": 20},)

    def __init__(self, env: FederatedEnv, releases: int) -> None:
        """Wraps ``env``.

        Args:
            env: The environment.
            releases: The most releases of an agent in an episode, >= 0.

        Raises:
            TypeError: ``releases`` is no integer.
            ValueError: It is negative.
        """
        super().__init__(env)
        require_integer("releases", releases, 0)
        self._releases = int(releases)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, in which nobody has released; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._left = np.full((len(seeds), self.max_num_agents), self._releases)
        return reset

    def permit(self, senders: Array) -> Array:
        """Says who may send: those who have releases left."""
        return self.env.permit(senders) & (self._left > 0)

    def _release(self, sends: Array) -> Arrays:
        released = self.env._release(sends)
        self._left -= sends
        return released
