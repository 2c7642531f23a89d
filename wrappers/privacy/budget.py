"""Privacy budgets: how the epsilon that agents have spent is measured, and how much they may spend."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from fedbandit_envs.basics.checks import require_choice, require_epsilon, require_number
from fedbandit_envs.core.privacy import Adjacency, Composition


class BudgetExhaustedError(RuntimeError):
    """Raised when a release would exceed an agent's privacy budget; the release then does not happen for any agent."""


@dataclass(frozen=True)
class Budget:
    """A privacy budget: how the epsilon that an agent has spent is measured, and the most that it may spend.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import GaussianPrivatizer
        >>> from fedbandit_envs.wrappers.privacy.budget import Budget
        >>> budget = Budget(epsilon=2.0, delta=1e-5, composition="exact")
        >>> env = GaussianPrivatizer(parallel_env(), epsilon=0.9, budget=budget, on_exhausted="silence")

    Attributes:
        epsilon: The most that any agent may spend in an episode, > 0; with infinity spending is measured, not limited.
        delta: The delta at which epsilon is measured, in [0, 1). None takes the sum of the deltas of all releases;
            a finite ``epsilon`` needs a number.
        composition: How releases are composed; see :mod:`fedbandit_envs.wrappers.privacy.accounting.accountant`.
        adjacency: The neighbouring histories that are protected, one that the environment names; None for the first of
            them.
    """

    epsilon: float = np.inf
    delta: float | None = None
    composition: Composition = "basic"
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        """Checks the attributes.

        Raises:
            TypeError: ``epsilon`` or ``delta`` is no number.
            ValueError: An attribute is out of its range, or ``epsilon`` is finite and ``delta`` None.
        """
        require_epsilon(self.epsilon, "budget epsilon")
        if self.delta is not None:
            require_number("budget delta", self.delta, 0, 1, open_above=True)
        if self.delta is None and np.isfinite(self.epsilon):
            raise ValueError("budget delta is None; a number in [0, 1) is required where epsilon is limited")
        require_choice("budget composition", self.composition, get_args(Composition))

    @classmethod
    def of(cls, given: "Budget | Mapping[str, Any] | None") -> "Budget":
        """Returns a budget from a :class:`Budget`, from a mapping of its arguments, or the default one from None.

        Raises:
            TypeError: ``given`` is none of these, or an argument is unknown.
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
