"""Procurement policies that start from a uniform prior over each quality: a posterior's index, and its draws."""

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.arms.posteriors import arm_keys, draw_posteriors
from fedbandit_envs.checks import require_number
from fedbandit_envs.procurement.oracle import procure_as_if
from fedbandit_envs.spaces import Spaces


class LaplaceIndex:
    """Laplace's estimate and a bonus that ignores the round, then Greedy SSA.

    Producer i of which W_i units were seen, Y_i of them good, has the index
    ``min(1, (Y_i + 1) / (W_i + 2) + width / sqrt(W_i + 1))``.
    """

    def __init__(self, width: float = 0.8) -> None:
        """Sets the bonus.

        Args:
            width: >= 0; 0 is greedy.

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        require_number("width", width, 0, np.inf)
        self._width = float(width)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Has nothing to forget; see :meth:`Policy.reset`."""

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        units, good = observation["total_delivered"], observation["total_good"]
        index = (good + 1.0) / (units + 2.0) + self._width / np.sqrt(units + 1.0)
        return procure_as_if(np.minimum(index, 1.0), observation)


class ThompsonProcurement:
    """Greedy SSA on draws from the qualities' posteriors, Beta(1 + good, 1 + defective) (Thompson 1933)."""

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Takes a key for each producer of each row; see :meth:`Policy.reset`."""
        producers = (spaces.observation["capacity"].shape or (0,))[0]
        self._keys = arm_keys(seeds, producers)
        self._quality = np.empty((*seeds.shape, producers))

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        rows = (-1, self._quality.shape[2])
        seen = (observation[name].reshape(rows) for name in ("total_delivered", "total_good"))
        draw_posteriors(
            self._keys.reshape(*rows, 2), observation["round"].reshape(-1), *seen, self._quality.reshape(rows)
        )
        return procure_as_if(self._quality, observation)
