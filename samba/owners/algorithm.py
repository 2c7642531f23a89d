"""Bandit algorithms that data owners with one arm each can play together (SAMBA, section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, get_args

from fedbandit_envs.baselines.arms.rules import (
    UCB,
    Choice,
    EpsilonDecreasing,
    EpsilonGreedy,
    Pursuit,
    Softmax,
    Thompson,
)
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.samba.crypto.keystreams import OwnerKeys
from fedbandit_envs.samba.owners.bank import OwnerBank

RULES: dict[str, Any] = {
    "epsilon-greedy": EpsilonGreedy,
    "epsilon-decreasing": EpsilonDecreasing,
    "ucb": UCB,
    "thompson": Thompson,
    "softmax": Softmax,
    "pursuit": Pursuit,
    "reinforcement-comparison": SimpleNamespace(
        needs_others="preferences are measured against the mean reward of all arms"
    ),
}
"""The rule that scores arms, by the algorithm's name.

Reinforcement comparison cannot be played by owners with one arm each; it is listed so that it is refused with this
reason (SAMBA, section 5.1).
"""

PLAYABLE = tuple(name for name, rule in RULES.items() if not hasattr(rule, "needs_others"))
"""Names of the algorithms in :data:`RULES` that owners with one arm each can play."""


@dataclass(frozen=True)
class Algorithm:
    """A bandit algorithm with its parameters.

    Every role that needs the algorithm is given it before the run. A message never makes a role load another
    algorithm, which could run foreign code.

    Attributes:
        name: A name of :data:`RULES`, or ``"module:attribute"`` of another
            :class:`~fedbandit_envs.baselines.arms.rules.Rule`.
        parameters: Keyword arguments of the rule.

    Example:
        >>> from fedbandit_envs.samba.crypto.keystreams import owner_keys
        >>> bank = Algorithm("softmax", {"temperature": 0.1}).bank(owner_keys(0, 3), 3, 100)
        >>> bank.choice, bank.iterations
        ('proportional', 1)
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def bank(self, keys: Sequence[OwnerKeys], arms: int, budget: int) -> OwnerBank:
        """Returns the state of some or all owners who play this algorithm, at the start of a run.

        Args:
            keys: Keys of these owners, in the order of their arms.
            arms: Number of all owners, K.
            budget: Number of rounds, N.

        Raises:
            TypeError: The algorithm does not know a parameter, or the object at its name is not a rule.
            ValueError: The name is unknown, a parameter is out of its range, or the algorithm cannot be played on
                encrypted scores (SAMBA, Theorem 1): its scores need other owners' data, or it picks in another way.
        """
        require_integer("arms", arms, 1)
        if not 1 <= len(keys) <= arms:
            raise ValueError(f"keys has {len(keys)} owners; 1 to arms = {arms} are required")
        if ":" not in self.name and self.name not in RULES:
            raise ValueError(
                f"algorithm is {self.name!r}; one of {sorted(PLAYABLE)} or 'module:attribute' is required"
            )
        make = resolve(self.name) if ":" in self.name else RULES[self.name]
        reason = getattr(make, "needs_others", "")
        if reason:
            raise ValueError(
                f"algorithm is {self.name!r}, which needs other owners' data for a score: {reason}; a score that "
                "follows from an owner's own pulls and rewards is required"
            )
        try:
            rule = make(**self.parameters)
        except TypeError as error:
            raise TypeError(f"algorithm {self.name!r} with parameters {self.parameters}: {error}") from None
        members = ("choice", "iterations", "begin", "exploration", "scores", "mark")
        missing = [name for name in members if not hasattr(rule, name)]
        if missing:
            raise TypeError(
                f"algorithm {self.name!r} makes a {type(rule).__name__} without {missing}; a Rule is required"
            )
        if rule.choice not in get_args(Choice):
            raise ValueError(
                f"algorithm {self.name!r} picks by {rule.choice!r}, which Comp cannot do among masked and permuted "
                f"scores; one of {get_args(Choice)} is required"
            )
        require_integer("iterations", rule.iterations, 1)
        return OwnerBank(rule, keys, arms, budget)
