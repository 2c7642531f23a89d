"""The budget: how spending is measured, and how much of it is allowed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.claim import Adjacency, Composition


class BudgetExhaustedError(RuntimeError):
    """A release would exceed the privacy budget; it did not happen."""


@dataclass(frozen=True)
class Budget:
    """A privacy budget: how spending is measured, and the most that may be spent.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import GaussianPrivatizer
        >>> from fedbandit_envs.wrappers.privacy.budget import Budget
        >>> budget = Budget(epsilon=2.0, delta=1e-5, composition="exact")
        >>> env = GaussianPrivatizer(parallel_env(), epsilon=0.9, budget=budget, on_exhausted="silence")

    Attributes:
        epsilon: The most that any agent may spend in an episode, > 0; infinity only measures.
        delta: The delta at which it is measured, in [0, 1). None stands for the deltas promised, added up; a
            limit needs a number.
        composition: How releases are composed; see :mod:`fedbandit_envs.wrappers.privacy.accounting.accountant`.
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


GivenBudget = Budget | Mapping[str, Any] | None
"""The types that privatizers accept as a budget; see :meth:`Budget.of`."""
