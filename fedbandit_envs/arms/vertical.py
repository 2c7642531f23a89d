"""The vertical federation: data owners with one arm each, of whom one is picked in every round (SAMBA, section 3.1).

Each owner submits a score, a selector picks by the largest or in proportion, and only the picked owner sees its reward.
Rounds are counted from 1, as in the paper: in the first K each owner is picked once; a selector picks from K + 1 on.
"""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from fedbandit_envs.arms.masks import Streams, owner_keys
from fedbandit_envs.arrays import Array
from fedbandit_envs.checks import require_choice, require_integer
from fedbandit_envs.compiled import kernel

Choice = Literal["argmax", "proportional"]
"""How the last iteration of a round picks among scores."""


class OwnerBank(Protocol):
    """Some owners' policies: of all owners, or of one alone; each does the same, to the bit, alone or among others.

    Attributes:
        choice: How the last iteration picks.
        iterations: How often owners submit scores in a round; all iterations but the last pick by the largest, and tell
            owners no more than who it was.
    """

    choice: Choice
    iterations: int

    @property
    def pulls(self) -> Array:
        """How often each owner was picked, int64 ``(size,)``."""

    @property
    def sums(self) -> Array:
        """The rewards of each so far, added up, int64 ``(size,)``."""

    def explores(self, round_: int) -> bool:
        """Says whether an owner is to be picked at random in this round: nobody submits a score."""

    def scores(self, round_: int, iteration: int) -> Array:
        """Returns the owners' scores, float64 ``(size,)``, finite and not negative.

        The score of an owner follows from what it has seen itself. The array holds until the next call.
        """

    def mark(self, round_: int, iteration: int, picked: Array) -> None:
        """Tells owners who among them was picked, bool ``(size,)``, after each iteration that had scores."""

    def observe(self, place: int, reward: int) -> None:
        """Tells one owner its reward."""


class Selector(Protocol):
    """Picks an owner."""

    def select(self, scores: Array, round_: int, iteration: int) -> Array:
        """Returns who is picked, bool ``(owners,)`` with one true entry.

        Args:
            scores: Of all owners, float64 ``(owners,)``, finite and not negative.
            round_: t.
            iteration: Of the round, from 0.

        Raises:
            ValueError: A score is not finite or negative, or all are 0 where picks are in proportion.
        """

    def explore(self, round_: int) -> Array:
        """Returns who is picked at random, bool ``(owners,)``, in a round without scores."""


@kernel
def _choose(scores, proportional, uniform):
    """Returns the place picked; -1 for a bad score, -2 where there is nothing to be in proportion to."""
    best, most, total = 0, -1.0, 0.0
    for i in range(scores.shape[0]):
        if not 0.0 <= scores[i] < np.inf:
            return -1
        total += scores[i]
        if scores[i] > most:
            best, most = i, scores[i]
    if not proportional:
        return best
    if not 0.0 < total < np.inf:
        return -2
    reach, threshold = 0.0, uniform * total
    for i in range(scores.shape[0]):
        reach += scores[i]
        if reach > threshold:
            return i
    # Rounding has brought the threshold up to the total, as it can where scores are hardly above 0.
    return best


def choose(choice: Choice, scores: Array, uniform: float) -> int:
    """Picks from a list of scores, as Comp does, which has them masked and permuted.

    Args:
        choice: ``"argmax"``: the first of the largest; ``"proportional"``: the first place at which the sum of scores
            from the left exceeds ``uniform`` times that of all.
        scores: float64 ``(owners,)``.
        uniform: In (0, 1).

    Returns:
        The place in the list.

    Raises:
        ValueError: A score is negative or not finite, or all are 0, or too large to add up, where picks are in
            proportion.
    """
    place = int(_choose(scores, choice == "proportional", uniform))
    if place == -1:
        bad = scores[~((scores >= 0) & (scores < np.inf))][0]
        raise ValueError(f"scores has {bad}; finite numbers >= 0 are required")
    if place == -2:
        raise ValueError(
            f"scores add up to {scores.sum()}; a finite number > 0 is required to pick in proportion"
        )
    return place


class PlainSelector:
    """Selects in the open exactly as SAMBA does behind encryption (SAMBA, Figure 6).

    Scores are multiplied by the round's mask and permuted, the place picked is that of :func:`choose`, and the
    permutation is undone: so ties are broken by the permutation, also between scores that the mask has made equal.
    """

    def __init__(self, choice: Choice, streams: Streams, iterations: int = 1) -> None:
        """Sets the selector up.

        Args:
            choice: How the last iteration of a round picks; those before it pick by the largest.
            streams: Masks, permutations and draws.
            iterations: How many there are in a round.

        Raises:
            TypeError: ``iterations`` is no integer.
            ValueError: A parameter is out of its range.
        """
        require_choice("choice", choice, get_args(Choice))
        require_integer("iterations", iterations, 1)
        self._choice = choice
        self._streams = streams
        self._last = iterations - 1

    def select(self, scores: Array, round_: int, iteration: int) -> Array:
        """Picks by masked and permuted scores; see :meth:`Selector.select`."""
        choice: Choice = self._choice if iteration == self._last else "argmax"
        masked = self._streams.mask(round_, iteration) * scores
        return self._pick(choice, masked, round_, iteration)

    def explore(self, round_: int) -> Array:
        """Picks by the permutation alone, all scores being Controller's one; see :meth:`Selector.explore`."""
        order = self._streams.permutation(round_, 0)
        return self._pick("argmax", np.full(order.shape, self._streams.common_score(round_)), round_, 0)

    def _pick(self, choice: Choice, scores: Array, round_: int, iteration: int) -> Array:
        order = self._streams.permutation(round_, iteration)
        place = choose(choice, scores[order], self._streams.uniform(round_, iteration))
        picked = np.zeros(order.shape, np.bool_)
        picked[order[place]] = True
        return picked


class OwnerArm:
    """An owner's arm: Bernoulli rewards, counted in the owner's own pulls.

    So an owner's j-th reward is the same whoever else is picked, and wherever the owner is.
    """

    _BLOCK = 256

    def __init__(self, mean: float, key: bytes) -> None:
        """Sets the arm.

        Args:
            mean: Probability of a reward of 1, else it is 0.
            key: Of the owner's rewards, see :class:`~fedbandit_envs.arms.masks.OwnerKeys`.

        Raises:
            ValueError: The mean is no probability.
        """
        if not 0.0 <= mean <= 1.0:
            raise ValueError(f"mean is {mean!r}; a number in [0, 1] is required")
        self._mean = float(mean)
        self._generator = np.random.Generator(
            np.random.SFC64(np.random.SeedSequence(int.from_bytes(key, "little")))
        )
        self._ahead: list[bool] = []

    def pull(self) -> int:
        """Returns the next reward, 0 or 1."""
        if not self._ahead:
            self._ahead = (self._generator.random(self._BLOCK) < self._mean)[::-1].tolist()
        return int(self._ahead.pop())


class VerticalResult(NamedTuple):
    """What a run has earned.

    Attributes:
        reward: The cumulative reward.
        pulls: How often each owner was picked, int64 ``(owners,)``.
        sums: Its rewards, added up, likewise.
        noted: The cumulative reward after each of the rounds that were to be noted.
    """

    reward: int
    pulls: Array
    sums: Array
    noted: tuple[int, ...] = ()


def run_vertical(
    means: Sequence[float] | Array,
    owners: OwnerBank,
    selector: Selector,
    budget: int,
    seed: int,
    *,
    note: Collection[int] = (),
) -> VerticalResult:
    """Spends a budget of rounds (SAMBA, Figure 3).

    Args:
        means: Of the owners' arms, ``(owners,)``.
        owners: The bank of all owners' policies, new.
        selector: Picks an owner.
        budget: N, the rounds in all.
        seed: Of the run; rewards follow from it.
        note: Rounds after which the cumulative reward is kept, in order, from K to N.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The budget does not pay for one round of each owner, the bank has another number of owners, a round
            to note is out of its range or order, or a score is bad.
    """
    number = len(means)
    require_integer("budget", budget, number)
    if list(note) != [round_ for round_ in sorted(set(note)) if number <= round_ <= budget]:
        raise ValueError(f"note is {list(note)}; rising integers in [{number}, {budget}] are required")
    if len(owners.pulls) != number:
        raise ValueError(f"owners has {len(owners.pulls)} policies; {number}, one a mean, are required")
    arms = [OwnerArm(mean, keys.reward) for mean, keys in zip(means, owner_keys(seed, number), strict=True)]
    for place, arm in enumerate(arms):
        owners.observe(place, arm.pull())
    noted = [int(owners.sums.sum())] if number in note else []
    for round_ in range(number + 1, budget + 1):
        if owners.explores(round_):
            picked = selector.explore(round_)
        else:
            for iteration in range(owners.iterations):
                picked = selector.select(owners.scores(round_, iteration), round_, iteration)
                owners.mark(round_, iteration, picked)
        place = int(picked.argmax())
        owners.observe(place, arms[place].pull())
        if round_ in note:
            noted.append(int(owners.sums.sum()))
    return VerticalResult(int(owners.sums.sum()), owners.pulls.copy(), owners.sums.copy(), tuple(noted))
