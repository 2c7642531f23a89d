"""Ways to say how exposure is shared out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.action_check import require_finite
from fedbandit_envs.arrays import Array
from fedbandit_envs.exposure.merit import Merits, shares_of
from fedbandit_envs.linear.expectation import expected_rewards
from fedbandit_envs.simplex import Simplex


class Distribution:
    """Shares of the arms, the environment's own action."""

    def __init__(self, num_arms: int) -> None:
        """Sets the space ``Simplex((num_arms,))``."""
        self.space: spaces.Space[Any] = Simplex((num_arms,))

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns ``choice`` as it is."""
        return choice


_STEEPNESS = 10.0
"""Of logits: shares can then differ by a factor of e^20."""


class Logits:
    """Logarithms of shares, up to a constant, in units of ten: shares are their softmax."""

    def __init__(self, num_arms: int) -> None:
        """Sets the space ``Box(-1, 1, (num_arms,))``; whatever is finite will do."""
        self.space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (num_arms,), np.float32)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns the softmax of ten times the logits.

        Raises:
            ValueError: A logit is not finite.
        """
        require_finite("logits", choice)
        return shares_of(_STEEPNESS * np.asarray(choice, np.float64))


class Parameter:
    """An estimate of theta*: arms get what they would deserve if it were right."""

    def __init__(self, dim: int, merits: Merits) -> None:
        """Sets the space ``Box(-1, 1, (dim,))`` and the merit functions of the federation."""
        self.space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (dim,), np.float32)
        self._merits = merits

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns shares in proportion to the merits of <x, estimate>.

        Raises:
            ValueError: An entry of the estimate is not finite.
        """
        require_finite("parameter", choice)
        means = expected_rewards(observation["contexts"], choice)
        return shares_of(self._merits.logarithm(means, observation.get("merit")))
