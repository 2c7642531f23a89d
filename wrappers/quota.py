"""The wrapper that limits how often each agent may release data in an episode."""

from collections.abc import Sequence

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.core.wrapper import FederatedWrapper


class Quota(FederatedWrapper):
    """A wrapper that limits the number of releases of each agent in an episode.

    After its last release an agent cannot send any more; attempts are ignored without an error. With a limit of 0 there
    is no communication. A release counts once, however many agents receive it.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Quota(parallel_env(num_agents=2), releases=1)
        >>> reset = env.reset_batch([0])
        >>> released = env.release(np.array([[True, False]]))
        >>> env.allowed_senders(np.ones((1, 2), bool)).tolist()
        [[False, True]]
    """

    layer = "data"
    # The conformance checks, which try each wrapper with these arguments, make at most 20 releases of an agent.
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
        self._releases = require_integer("releases", releases, 0)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with the full number of releases; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._left = np.full((len(seeds), self.max_num_agents), self._releases)
        return reset

    def allowed_senders(self, senders: Array) -> Array:
        """Returns which of the given senders may still release, bool ``(replicas, agents)``.

        See :meth:`FederatedEnv.allowed_senders`.
        """
        return self.env.allowed_senders(senders) & (self._left > 0)

    def _release(self, sends: Array) -> Arrays:
        released = self.env._release(sends)
        self._left -= sends
        return released
