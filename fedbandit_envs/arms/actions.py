"""Ways for a learning agent to say which arms it pulls."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arms.oracle import largest
from fedbandit_envs.arrays import Array


class Arm:
    """An arm's number, or those of a superarm's arms: the environment's own action."""

    def __init__(self, num_arms: int, slots: int) -> None:
        """Sets the space ``Discrete(num_arms)``; with several slots ``MultiDiscrete([num_arms] * slots)``."""
        self.space: spaces.Space[Any] = (
            spaces.Discrete(num_arms)
            if slots == 1
            else spaces.MultiDiscrete(np.full(slots, num_arms, np.int64), dtype=np.int64)
        )
        self._slots = slots

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns ``choice`` as it is."""
        return choice

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Says which arms are awake, slot by slot; all, where none is: whatever is chosen then pulls nothing."""
        if "awake" not in observation:
            some = observation["total_pulls"]
            return np.ones((*some.shape[:2], self._slots * some.shape[2]), np.bool_)
        awake = observation["awake"]
        return np.tile(awake | ~awake.any(axis=2, keepdims=True), self._slots)


class Values:
    """An estimate of each arm's mean: the arms with the largest are pulled, of those that are awake."""

    def __init__(self, num_arms: int, slots: int) -> None:
        """Sets the space ``Box(0, 1, (num_arms,))``."""
        self.space: spaces.Space[Any] = spaces.Box(0.0, 1.0, (num_arms,), np.float32)
        self._slots = slots

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns the arms with the largest values, the first ones where values are the same.

        Raises:
            ValueError: A value is NaN.
        """
        bad = np.isnan(choice)
        if bad.any():
            replica, agent, arm = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"action: value {arm} of row {agent} (replica {replica}) is nan; a number is required"
            )
        values = np.asarray(choice, np.float64)
        if "awake" in observation:
            values = np.where(observation["awake"], values, -np.inf)
        arms = largest(values, self._slots)
        return arms[..., 0] if self._slots == 1 else arms
