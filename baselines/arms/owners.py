"""Policies of data owners with one arm each, for the vertical federation (SAMBA, section 4)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedbandit_envs.arms.masks import Keystream, OwnerKeys
from fedbandit_envs.arms.vertical import OwnerBank
from fedbandit_envs.arrays import Array
from fedbandit_envs.baselines.arms.rules import (
    UCB,
    EpsilonDecreasing,
    EpsilonGreedy,
    Pursuit,
    Rule,
    Setting,
    Softmax,
    Thompson,
)
from fedbandit_envs.checks import require_integer
from fedbandit_envs.entry_points import resolve


class ReinforcementComparison:
    """Named so that it can be refused with its reason (SAMBA, section 5.1)."""

    needs_others = "preferences are measured against the mean reward of all arms"


OWNERS: dict[str, Callable[..., Any]] = {
    "epsilon-greedy": EpsilonGreedy,
    "epsilon-decreasing": EpsilonDecreasing,
    "ucb": UCB,
    "thompson": Thompson,
    "softmax": Softmax,
    "pursuit": Pursuit,
    "reinforcement-comparison": ReinforcementComparison,
}
"""Every algorithm by name; the last is there to be refused."""


class RuleBank:
    """Owners who follow a rule on what each has seen itself; see :class:`~fedbandit_envs.arms.vertical.OwnerBank`."""

    def __init__(self, rule: Rule, keys: Sequence[OwnerKeys], num_owners: int, budget: int) -> None:
        """Starts a run; see :func:`make_owners`."""
        self.choice = rule.choice
        self.iterations = rule.iterations
        size = len(keys)
        self._rule = rule
        self._coin = Keystream(keys[0].coin)
        self._pulls, self._sums, self._scores = np.zeros((3, 1, size))
        self._round = np.zeros(1, np.int64)
        self._acting = np.ones(1, np.bool_)
        rule.begin(Setting(1, size, num_owners, budget, _policy_keys(keys)))

    @property
    def pulls(self) -> Array:
        """How often each owner was picked, int64 ``(size,)``."""
        return self._pulls[0].astype(np.int64)

    @property
    def sums(self) -> Array:
        """The rewards of each, added up, int64 ``(size,)``."""
        return self._sums[0].astype(np.int64)

    def explores(self, round_: int) -> bool:
        """Tosses the common coin, where there is something to toss it for."""
        self._round[0] = round_
        chance = float(np.asarray(self._rule.exploration(self._round)).flat[0])
        return chance > 0.0 and self._coin.uniform(round_) <= chance

    def scores(self, round_: int, iteration: int) -> Array:
        """Returns the rule's scores, float64 ``(size,)``."""
        self._round[0] = round_
        self._rule.scores(self._round, self._pulls, self._sums, iteration, self._scores)
        return self._scores[0]

    def mark(self, round_: int, iteration: int, picked: Array) -> None:
        """Hands marks on to the rule."""
        self._rule.mark(iteration, picked[np.newaxis], self._acting)

    def observe(self, place: int, reward: int) -> None:
        """Counts one owner's reward."""
        self._pulls[0, place] += 1.0
        self._sums[0, place] += reward


def _policy_keys(keys: Sequence[OwnerKeys]) -> Array:
    """Returns the owners' own keys of draws, uint32 ``(1, owners, 2)``."""
    return np.array([np.frombuffer(own.policy[:8], "<u4") for own in keys], np.uint32)[np.newaxis]


def make_owners(
    algorithm: str, keys: Sequence[OwnerKeys], num_owners: int, budget: int, **parameters: Any
) -> OwnerBank:
    """Makes the policies of some owners.

    Args:
        algorithm: A name of :data:`OWNERS`, or the entry point of a :class:`~fedbandit_envs.baselines.arms.rules.Rule`,
            ``"module:attribute"``.
        keys: Of these owners, in their order; what an owner does depends on its own keys alone.
        num_owners: Number of all owners, K.
        budget: N, the rounds in all.
        **parameters: Of the algorithm.

    Raises:
        TypeError: The algorithm does not know a parameter, or is no rule.
        ValueError: The name is unknown, the algorithm cannot be played by owners who know their own arm alone, or a
            parameter is out of its range.
    """
    require_integer("num_owners", num_owners, 1)
    if not 1 <= len(keys) <= num_owners:
        raise ValueError(f"keys has {len(keys)} owners; 1 to num_owners = {num_owners} are required")
    if ":" not in algorithm and algorithm not in OWNERS:
        raise ValueError(
            f"algorithm is {algorithm!r}; one of {sorted(OWNERS)} or 'module:attribute' is required"
        )
    make = resolve(algorithm) if ":" in algorithm else OWNERS[algorithm]
    reason = getattr(make, "needs_others", "")
    if reason:
        raise ValueError(
            f"algorithm is {algorithm!r}, which needs other owners' data for a score: {reason}; a score that follows "
            "from an owner's own pulls and rewards is required"
        )
    try:
        rule = make(**parameters)
    except TypeError as error:
        raise TypeError(f"algorithm {algorithm!r} with parameters {parameters}: {error}") from None
    missing = [
        name
        for name in ("choice", "iterations", "begin", "exploration", "scores", "mark")
        if not hasattr(rule, name)
    ]
    if missing:
        raise TypeError(
            f"algorithm {algorithm!r} makes a {type(rule).__name__} without {missing}; a Rule is required"
        )
    return RuleBank(rule, keys, num_owners, budget)
