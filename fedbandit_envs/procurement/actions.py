"""Ways for a learning agent to say what it procures."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array
from fedbandit_envs.procurement.oracle import procure_as_if


class Quantities:
    """Integer units from each producer, the environment's own action."""

    def __init__(self, num_producers: int, max_capacity: int) -> None:
        """Sets the space ``MultiDiscrete([max_capacity + 1] * num_producers)``."""
        self.space: spaces.Space[Any] = spaces.MultiDiscrete(
            np.full(num_producers, max_capacity + 1, np.int64), dtype=np.int64
        )
        self._units = np.arange(max_capacity + 1)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns ``choice`` as it is."""
        return choice

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Says which quantities are within capacity, producer by producer."""
        capacity = observation["capacity"]
        within = self._units <= capacity[..., np.newaxis]
        return within.reshape(*capacity.shape[:2], -1)


class CapacityPortions:
    """Portions of each producer's capacity in [0, 1], rounded to whole units."""

    def __init__(self, num_producers: int) -> None:
        """Sets the space ``Box(0, 1, (num_producers,))``."""
        self.space: spaces.Space[Any] = spaces.Box(0.0, 1.0, (num_producers,), np.float32)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns ``round(portion * capacity)``.

        Raises:
            ValueError: A portion is outside [0, 1] or NaN.
        """
        _require_unit_interval(choice, "portion")
        return np.rint(choice * observation["capacity"]).astype(np.int32)


class QualityIndex:
    """A quality estimate in [0, 1] for each producer, which Greedy SSA turns into a procurement."""

    def __init__(self, num_producers: int) -> None:
        """Sets the space ``Box(0, 1, (num_producers,))``."""
        self.space: spaces.Space[Any] = spaces.Box(0.0, 1.0, (num_producers,), np.float32)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns what the greedy oracle procures if the estimates were the qualities.

        Raises:
            ValueError: An estimate is outside [0, 1] or NaN.
        """
        _require_unit_interval(choice, "quality estimate")
        return procure_as_if(np.asarray(choice, np.float64), observation)


def _require_unit_interval(choice: Array, meaning: str) -> None:
    valid = (choice >= 0) & (choice <= 1)
    if not valid.all():
        replica, agent, producer = (int(i) for i in np.argwhere(~valid)[0])
        raise ValueError(
            f"action: {meaning} of row {agent} (replica {replica}) for producer {producer} is "
            f"{choice[replica, agent, producer]}; a number in [0, 1] is required"
        )
