"""Ways for a learning agent to say which arm it pulls."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.action_check import require_finite
from fedbandit_envs.arrays import Array
from fedbandit_envs.linear.expectation import expected_rewards


class Arm:
    """An arm's index, the environment's own action."""

    def __init__(self, num_arms: int) -> None:
        """Sets the space ``Discrete(num_arms)``."""
        self.space: spaces.Space[Any] = spaces.Discrete(num_arms)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns ``choice`` as it is."""
        return choice


class Parameter:
    """An estimate of theta*: the arm with the largest <x, estimate> is pulled, the first one if there are several."""

    def __init__(self, dim: int) -> None:
        """Sets the space ``Box(-1, 1, (dim,))``; only the direction matters."""
        self.space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (dim,), np.float32)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns the arm that is best for the estimate.

        Raises:
            ValueError: An entry of the estimate is not finite.
        """
        require_finite("parameter", choice)
        value = expected_rewards(observation["contexts"], choice)
        return value.argmax(axis=-1)


class Values:
    """An estimate of each offered arm's mean reward: the largest is pulled, the first one if there are several."""

    def __init__(self, num_arms: int) -> None:
        """Sets the space ``Box(-1, 1, (num_arms,))``; only the order matters."""
        self.space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (num_arms,), np.float32)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns the arm with the largest value.

        Raises:
            ValueError: A value is not finite.
        """
        require_finite("value", choice)
        arm: Array = choice.argmax(axis=-1)
        return arm
