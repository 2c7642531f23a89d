"""Procurement policies with a uniform prior on each quality: an index from posterior means, and posterior draws."""

import numpy as np

from fedbandit_envs.baselines.arms.posteriors import arm_keys, draw_posteriors
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.procurement.oracle import procure


class LaplaceIndex:
    """Procures by Greedy SSA (Deva et al. 2021) as if an index of each producer were its true quality.

    The index is Laplace's estimate plus a bonus that does not depend on the round: for a producer with W_i delivered
    units, Y_i of them good, it is ``min(1, (Y_i + 1) / (W_i + 2) + width / sqrt(W_i + 1))``.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement.bayesian import LaplaceIndex
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = LaplaceIndex(width=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def __init__(self, width: float = 0.8) -> None:
        """Sets the size of the bonus.

        Args:
            width: Factor of the bonus, >= 0; 0 means no exploration.

        Raises:
            TypeError: ``width`` is no number.
            ValueError: ``width`` is negative or infinite.
        """
        self._width = require_number("width", width, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Does nothing, since the policy has no state; see :meth:`Policy.reset`."""

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        units, good = observation["total_delivered"], observation["total_good"]
        index = (good + 1.0) / (units + 2.0) + self._width / np.sqrt(units + 1.0)
        return procure(np.minimum(index, 1.0), observation)


class ThompsonProcurement:
    """Thompson sampling: procures by Greedy SSA as if draws from posteriors were the true qualities (Thompson 1933).

    The posterior of a producer's quality is Beta(1 + good units, 1 + defective units).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement.bayesian import ThompsonProcurement
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = ThompsonProcurement()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Stores for each producer of each agent the key of its random numbers; see :meth:`Policy.reset`."""
        producers = (spec.observation["capacity"].shape or (0,))[0]
        self._keys = arm_keys(seeds, producers)
        self._quality = np.empty((*seeds.shape, producers))

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        rows = (-1, self._quality.shape[2])
        seen = (observation[name].reshape(rows) for name in ("total_delivered", "total_good"))
        draw_posteriors(
            self._keys.reshape(*rows, 2), observation["round"].reshape(-1), *seen, self._quality.reshape(rows)
        )
        return procure(self._quality, observation)
