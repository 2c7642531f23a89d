"""Data owners: their Bernoulli arms, their pulls, rewards and scores, and the algorithms that they can play."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np

from fedbandit_envs.baselines.arms import (
    UCB1,
    Choice,
    EpsilonDecreasing,
    EpsilonGreedy,
    Pursuit,
    Rule,
    Softmax,
    ThompsonSampling,
)
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.samba.keystreams import Keystream, OwnerKeys


def owner_rewards(mean: float, key: bytes) -> Iterator[int]:
    """Returns the rewards, 0 or 1, of a data owner's Bernoulli arm, one a pull.

    The j-th reward depends only on the mean, the key and j, neither on the other owners that are picked nor on the
    machine.

    Args:
        mean: Probability that a reward is 1.
        key: The key of the owner's rewards, see :class:`~fedbandit_envs.samba.keystreams.OwnerKeys`.

    Raises:
        ValueError: The mean is no probability.

    Example:
        >>> next(owner_rewards(mean=1.0, key=bytes(32)))
        1
    """
    if not 0.0 <= mean <= 1.0:
        raise ValueError(f"mean is {mean!r}; a number in [0, 1] is required")
    seed = np.random.SeedSequence(int.from_bytes(key, "little"))
    generator = np.random.Generator(np.random.SFC64(seed))
    blocks = (generator.random(_BLOCK) < mean for _ in count())
    return map(int, chain.from_iterable(map(np.ndarray.tolist, blocks)))


class OwnerBank:
    """The pulls, rewards and scores of some owners: of all owners, of a group, or of one.

    An owner's scores are the same to the last bit, whatever other owners are in its bank.

    Attributes:
        choice: How the last iteration of a round picks an owner: ``"argmax"``, by the largest score, or
            ``"proportional"``, at random in proportion to scores.
        iterations: Number of iterations in a round, in each of which owners submit scores and one owner is picked. All
            but the last pick the largest score, and the picked owner does not pull its arm.
    """

    choice: Choice
    iterations: int

    def __init__(self, rule: Rule, keys: Sequence[OwnerKeys], num_owners: int, budget: int) -> None:
        """Makes the state of owners at the start of a run, before any pull.

        Args:
            rule: The rule that scores arms.
            keys: Keys of the owners in this bank.
            num_owners: Number of all owners, K.
            budget: Number of rounds, N.
        """
        self.choice = rule.choice
        self.iterations = rule.iterations
        size = len(keys)
        self._rule = rule
        self._coin = Keystream(keys[0].coin)
        self._pulls, self._sums, self._scores = np.zeros((3, 1, size))
        self._round = np.zeros(1, np.int64)
        self._active = np.ones(1, np.bool_)
        draws = np.array([np.frombuffer(own.policy[:8], "<u4") for own in keys], np.uint32)[np.newaxis]
        rule.begin(1, size, num_owners, budget, draws)

    @property
    def pulls(self) -> Array:
        """Number of times that each owner of this bank has pulled its arm, int64 ``(size,)``."""
        return self._pulls[0].astype(np.int64)

    @property
    def sums(self) -> Array:
        """The sum of the rewards of each owner of this bank, int64 ``(size,)``."""
        return self._sums[0].astype(np.int64)

    def explores(self, round_: int) -> bool:
        """Returns whether an owner is picked uniformly at random in this round; then no owner submits a score."""
        self._round[0] = round_
        chance = float(np.asarray(self._rule.exploration(self._round)).flat[0])
        return chance > 0.0 and self._coin.uniform(round_) <= chance

    def scores(self, round_: int, iteration: int) -> Array:
        """Returns the owners' scores, float64 ``(size,)``, finite and not negative; valid until the next call."""
        self._round[0] = round_
        self._rule.scores(self._round, self._pulls, self._sums, iteration, self._scores)
        return self._scores[0]

    def mark(self, iteration: int, picked: Array) -> None:
        """Tells the owners' rule which owner an iteration has picked by scores.

        Args:
            iteration: The iteration within the round, counted from 0.
            picked: True for the picked owner, if it is in this bank, bool ``(size,)``.
        """
        self._rule.mark(iteration, picked[np.newaxis], self._active)

    def observe(self, place: int, reward: int) -> None:
        """Adds a pull and its reward to the counts of one owner.

        Args:
            place: Index of the owner in this bank, from 0.
            reward: The reward, 0 or 1.
        """
        self._pulls[0, place] += 1.0
        self._sums[0, place] += reward


_BLOCK = 256

RULES: dict[str, Any] = {
    "epsilon-greedy": EpsilonGreedy,
    "epsilon-decreasing": EpsilonDecreasing,
    "ucb": UCB1,
    "thompson": ThompsonSampling,
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
            :class:`~fedbandit_envs.baselines.arms.Rule`.
        parameters: Keyword arguments of the rule.

    Example:
        >>> from fedbandit_envs.samba.keystreams import owner_keys
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
