"""Action formats of procurement: forms in which a learning agent can choose quantities."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.actions import OwnActions, require_entries
from fedbandit_envs.procurement.oracle import procure


class Quantities(OwnActions):
    """Integer units from each producer: the environment's own actions."""

    def __init__(self, num_producers: int, max_capacity: int) -> None:
        """Sets the space ``MultiDiscrete([max_capacity + 1] * num_producers)``."""
        super().__init__(
            spaces.MultiDiscrete(np.full(num_producers, max_capacity + 1, np.int64), dtype=np.int64)
        )
        self._units = np.arange(max_capacity + 1)

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Returns which quantities are within capacity, bool ``(replicas, agents, producers * (max_capacity + 1))``."""
        capacity = observation["capacity"]
        within = self._units <= capacity[..., np.newaxis]
        return within.reshape(*capacity.shape[:2], -1)


def quantities_by_portions(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the quantities ``round(portion * capacity)``, int32 ``(replicas, agents, producers)``.

    Args:
        choice: Portions of each producer's capacity, ``(replicas, agents, producers)``.
        observation: The agents' observations.

    Raises:
        ValueError: A portion is outside [0, 1] or NaN.
    """
    _require_unit_interval("portions", choice)
    return np.rint(choice * observation["capacity"]).astype(np.int32)


def quantities_by_quality(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the quantities that Greedy SSA (Deva et al. 2021) would buy if the estimates were the true qualities.

    Args:
        choice: Estimates of each producer's quality, ``(replicas, agents, producers)``.
        observation: The agents' observations.

    Raises:
        ValueError: An estimate is outside [0, 1] or NaN.
    """
    _require_unit_interval("quality estimates", choice)
    return procure(np.asarray(choice, np.float64), observation)


def _require_unit_interval(name: str, choice: Array) -> None:
    require_entries(name, choice, (choice >= 0) & (choice <= 1), "a number in [0, 1]")
