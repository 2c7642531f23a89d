"""How much may be spent, and how it is shared out over the releases."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.checks import require_choice
from fedbandit_envs.claim import Adjacency, Composition


class BudgetExhaustedError(RuntimeError):
    """A release would exceed the privacy budget; it did not happen."""


@dataclass(frozen=True)
class Budget:
    """How spending is measured, and where it ends.

    Attributes:
        epsilon: The most that any agent may spend in an episode, > 0; infinity only measures.
        delta: The delta at which it is measured, in [0, 1). None stands for the deltas promised, added up; a
            limit needs a number.
        composition: By which releases are composed; see :mod:`fedbandit_envs.wrappers.privacy.accounting.accountant`.
        adjacency: The neighbouring histories that are protected, one that the environment names; None for the first of
            them.
    """

    epsilon: float = np.inf
    delta: float | None = None
    composition: Composition = "basic"
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        """Refuses bad values.

        Raises:
            ValueError: An attribute is out of its range.
        """
        if not self.epsilon > 0:
            raise ValueError(f"budget epsilon is {self.epsilon!r}; a number > 0 is required")
        if self.delta is not None and not 0 <= self.delta < 1:
            raise ValueError(f"budget delta is {self.delta!r}; None or a number in [0, 1) is required")
        if self.delta is None and np.isfinite(self.epsilon):
            raise ValueError("budget delta is None; a number in [0, 1) is required where epsilon is limited")
        require_choice("budget composition", self.composition, get_args(Composition))

    @classmethod
    def of(cls, given: "Budget | Mapping[str, Any] | None") -> "Budget":
        """Takes a budget as it is, makes one from its arguments (as JSON has them), or the default from None.

        Raises:
            TypeError: It is none of these, or an argument is unknown.
            ValueError: An argument is out of its range.
        """
        if isinstance(given, cls):
            return given
        if given is None or isinstance(given, Mapping):
            return cls(**(given or {}))
        raise TypeError(
            f"budget is a {type(given).__name__}; a Budget or a mapping of its arguments is required"
        )


# From here on the geometric part of the decreasing sequence is lost in rounding.
_DISTINCT = 64


def decreasing(epsilon: float, horizon: int) -> Array:
    """Returns epsilon/(2 log2 T) + epsilon/2^(z+1) for the releases z = 1, 2, ... (P-FCB, section 5.2).

    The paper prints "log"; only to base 2 do log2 T releases, as many as doubling gaps make, spend epsilon.

    Args:
        epsilon: To be spent on one value, > 0.
        horizon: T, at least 2.

    Returns:
        float64; all later releases get as much as the last.

    Raises:
        ValueError: The horizon is too short.
    """
    if horizon < 2:
        raise ValueError(
            f"max_cycles is {horizon}; at least 2 is required to share epsilon out, or state releases"
        )
    z = np.arange(1, _DISTINCT + 1)
    return epsilon / (2 * np.log2(horizon)) + epsilon / 2.0 ** (z + 1)
