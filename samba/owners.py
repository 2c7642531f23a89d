"""The vertical federation: data owners with one arm each, their algorithms, and a whole run without encryption.

Each of the K owners submits a score, a selector picks one owner by the largest score or in proportion to scores, and
only the picked owner sees its reward (SAMBA, section 3.1). Rounds are counted from 1, as in the paper: in the first K
rounds each owner is picked once; from round K + 1 on the selector picks.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from typing import Any, NamedTuple, get_args

import numpy as np

from fedbandit_envs.baselines import arms as rules
from fedbandit_envs.baselines.arms import Choice, Rule
from fedbandit_envs.basics.arrays import Array, plain
from fedbandit_envs.basics.checks import require_choice, require_integer, require_number
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.samba.keys import Keystream, OwnerKeys, Permutations, derive_key, owner_keys
from fedbandit_envs.samba.messages import SecureError


def owner_rewards(mean: float, key: bytes) -> Iterator[int]:
    """Returns the rewards, 0 or 1, of a data owner's Bernoulli arm, one a pull.

    The j-th reward depends only on the mean, the key and j, neither on the other owners that are picked nor on the
    machine.

    Args:
        mean: Probability that a reward is 1.
        key: The key of the owner's rewards, see :class:`~fedbandit_envs.samba.keys.OwnerKeys`.

    Raises:
        ValueError: The mean is no probability.

    Example:
        >>> next(owner_rewards(mean=1.0, key=bytes(32)))
        1
    """
    require_number("mean", mean, 0, 1)
    seed = np.random.SeedSequence(int.from_bytes(key, "little"))
    generator = np.random.Generator(np.random.SFC64(seed))
    blocks = (generator.random(256) < mean for _ in count())
    return map(int, chain.from_iterable(map(np.ndarray.tolist, blocks)))


class OwnerBank:
    """The pulls, rewards and scores of some owners: of all owners, of a group, or of one.

    An owner's scores are the same to the last bit, whatever other owners are in its bank.

    Attributes:
        rule: The rule that scores arms; it says how many iterations a round has, and how the last of them picks.
    """

    def __init__(self, rule: Rule, keys: Sequence[OwnerKeys], num_owners: int, budget: int) -> None:
        """Makes the state of owners at the start of a run, before any pull.

        Args:
            rule: The rule that scores arms.
            keys: Keys of the owners in this bank.
            num_owners: Number of all owners, K.
            budget: Number of rounds, N.
        """
        self.rule = rule
        size = len(keys)
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
        chance = float(np.asarray(self.rule.exploration(self._round)).flat[0])
        return chance > 0.0 and self._coin.uniform(round_) <= chance

    def scores(self, round_: int, iteration: int) -> Array:
        """Returns the owners' scores, float64 ``(size,)``, finite and not negative; valid until the next call."""
        self._round[0] = round_
        self.rule.scores(self._round, self._pulls, self._sums, iteration, self._scores)
        return self._scores[0]

    def mark(self, iteration: int, picked: Array) -> None:
        """Tells the owners' rule which owner an iteration has picked by scores.

        Args:
            iteration: The iteration within the round, counted from 0.
            picked: True for the picked owner, if it is in this bank, bool ``(size,)``.
        """
        self.rule.mark(iteration, picked[np.newaxis], self._active)

    def observe(self, place: int, reward: int) -> None:
        """Adds a pull and its reward to the counts of one owner.

        Args:
            place: Index of the owner in this bank, from 0.
            reward: The reward, 0 or 1.
        """
        self._pulls[0, place] += 1.0
        self._sums[0, place] += reward


RULES: dict[str, type[Rule]] = {
    "epsilon-greedy": rules.EpsilonGreedy,
    "epsilon-decreasing": rules.EpsilonDecreasing,
    "ucb": rules.UCB1,
    "thompson": rules.ThompsonSampling,
    "softmax": rules.Softmax,
    "pursuit": rules.Pursuit,
}
"""The rule that scores arms, by the algorithm's name."""


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
        >>> from fedbandit_envs.samba.keys import owner_keys
        >>> bank = Algorithm("softmax", {"temperature": 0.1}).bank(owner_keys(0, 3), 3, 100)
        >>> bank.rule.choice, bank.rule.iterations
        ('proportional', 1)
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Makes Python's numbers of NumPy's, since roles are sent the parameters as JSON."""
        object.__setattr__(self, "parameters", plain(self.parameters))

    def bank(self, keys: Sequence[OwnerKeys], arms: int, budget: int) -> OwnerBank:
        """Returns the state of some or all owners who play this algorithm, at the start of a run.

        Args:
            keys: Keys of these owners, in the order of their arms.
            arms: Number of all owners, K.
            budget: Number of rounds, N.

        Raises:
            AttributeError: The object at the algorithm's name makes no rule.
            TypeError: The algorithm does not know a parameter.
            ValueError: The name is unknown, a parameter is out of its range, or the algorithm cannot be played on
                encrypted scores (SAMBA, Theorem 1), since its scores need other owners' data.
        """
        if self.name == "reinforcement-comparison":
            raise ValueError(
                f"algorithm is {self.name!r}, which needs other owners' data for a score: preferences are measured "
                "against the mean reward of all arms (SAMBA, section 5.1)"
            )
        rule = make("algorithm", {**self.parameters, "name": self.name}, RULES, Rule)
        return OwnerBank(rule, keys, arms, budget)


@dataclass(frozen=True)
class SambaPlan:
    """The plan of a run: its arms, rounds, algorithm, and how each iteration selects an owner.

    A round has one or more iterations: in each, owners submit scores, one owner is picked, and every owner gets a mark
    that tells whether it is the one; the owner picked in the last iteration pulls its arm.

    Attributes:
        arms: Number of owners, K.
        budget: Number of rounds, N.
        algorithm: The algorithm that owners play.
        choice: How the last iteration of a round picks an owner: ``"argmax"``, by the largest score, or
            ``"proportional"``, at random in proportion to scores. Earlier iterations pick the largest score.
        iterations: Number of iterations in a round.

    Example:
        >>> plan = SambaPlan.make(Algorithm("pursuit"), arms=3, budget=100)
        >>> plan.iterations, plan.choice_of(0), plan.choice_of(1)
        (2, 'argmax', 'proportional')
    """

    arms: int
    budget: int
    algorithm: Algorithm
    choice: Choice
    iterations: int

    def __post_init__(self) -> None:
        """Checks that the plan can be run.

        Raises:
            TypeError: A number is no integer.
            ValueError: A number is out of its range, the choice is unknown, or the run is so long that the key which
                owners share with Comp would encrypt more than 2^32 items.
        """
        require_integer("arms", self.arms, 1)
        require_integer("budget", self.budget, self.arms)
        require_integer("iterations", self.iterations, 1)
        require_choice("choice", self.choice, get_args(Choice))
        encryptions = 2 * self.arms * self.iterations * (self.budget - self.arms)
        if encryptions > 1 << 32:
            raise ValueError(
                f"budget is {self.budget}, which takes up to {encryptions:.2e} encryptions under one key; at most 2^32 "
                "are allowed, since nonces are random"
            )

    @classmethod
    def make(cls, algorithm: Algorithm, arms: int, budget: int) -> "SambaPlan":
        """Returns the plan of a run; the algorithm determines the number of iterations and the rule of selection.

        Args:
            algorithm: The algorithm that owners play.
            arms: Number of owners, K.
            budget: Number of rounds, N.

        Raises:
            TypeError: The algorithm does not know a parameter, or a number is no integer; see
                :meth:`.Algorithm.bank`.
            ValueError: The algorithm cannot be played on encrypted scores, or a number is out of its range; see
                :meth:`.Algorithm.bank`.
        """
        bank = algorithm.bank(owner_keys(0, 1), arms, budget)
        return cls(int(arms), int(budget), algorithm, bank.rule.choice, bank.rule.iterations)

    def choice_of(self, iteration: int) -> Choice:
        """Returns how an iteration of a round picks an owner: ``choice`` for the last iteration, else ``"argmax"``."""
        return self.choice if iteration == self.iterations - 1 else "argmax"

    def to_bytes(self, modulus: int = 0) -> bytes:
        """Returns the content of a PLAN message: the plan and the customer's Paillier modulus, as JSON.

        Comp, which adds and encrypts no sums, is sent the modulus 0.
        """
        return json.dumps({**asdict(self), "modulus": f"{modulus:x}"}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple["SambaPlan", int]:
        """Returns the plan and the customer's Paillier modulus from the content of a PLAN message.

        Raises:
            SecureError: The content does not describe a plan.
        """
        try:
            parts = json.loads(content)
            modulus = int(parts.pop("modulus"), 16)
            return cls(**{**parts, "algorithm": Algorithm(**parts["algorithm"])}), modulus
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise SecureError(f"the plan of the run cannot be read: {error}") from error


@kernel
def _choose(scores, proportional, uniform):
    """Returns the picked place as :func:`choose` does, or -1 in place of an error."""
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
        return -1
    reach, threshold = 0.0, uniform * total
    for i in range(scores.shape[0]):
        reach += scores[i]
        if reach > threshold:
            return i
    # Where scores are hardly above 0, rounding can make the threshold equal to the total, so that no partial sum
    # exceeds it.
    return best


def choose(choice: Choice, scores: Array, uniform: float) -> int:
    """Returns the place (index) that is picked in a list of scores.

    In the encrypted protocol the role Comp calls it on scores that are masked and permuted.

    Args:
        choice: ``"argmax"``: the first of the largest scores; ``"proportional"``: the first place at which the sum of
            scores from the left exceeds ``uniform`` times the sum of all.
        scores: Scores, float64 ``(owners,)``, finite and not negative.
        uniform: A uniform random number in (0, 1), used if ``choice`` is ``"proportional"``.

    Raises:
        ValueError: A score is negative or not finite; or ``choice`` is proportional, and scores add up to 0 or are too
            large to add up.
    """
    place = int(_choose(scores, choice == "proportional", uniform))
    if place < 0:
        required = "finite numbers >= 0" + (" with a finite sum > 0" if choice == "proportional" else "")
        raise ValueError(f"scores are {scores}; {required} are required")
    return place


class PlainSelector:
    """Picks owners without encryption, the same ones as the encrypted protocol for the same seed (SAMBA, Figure 6).

    Scores are multiplied by the round's mask and permuted, one place is picked by :func:`choose`, and the permutation
    is undone. So the permutation breaks ties, also between scores that rounding made equal in the multiplication.

    Attributes:
        masks: The pseudorandom stream of masks alpha_t in (0, 1), by which all owners multiply their scores.
        permutations: The stream of permutations of the owners.
        draws: The stream of numbers in (0, 1) that decide where an owner is picked in proportion to scores.
        common_scores: The stream of scores in (0, 1) that Controller gives to all owners in a round of exploration.

    Example:
        >>> from fedbandit_envs.samba import Algorithm
        >>> selector = PlainSelector(SambaPlan.make(Algorithm("ucb"), arms=3, budget=100), seed=0)
        >>> selector.select(np.array([0.3, 0.9, 0.5]), round_=4, iteration=0)
        array([False,  True, False])
    """

    def __init__(self, plan: SambaPlan, seed: int) -> None:
        """Derives the streams from the run's seed.

        Args:
            plan: The plan of the run, which has the number of owners and how iterations pick.
            seed: The seed of the run, a non-negative integer.

        Raises:
            TypeError: ``seed`` is no integer.
            ValueError: ``seed`` is negative.
        """
        self._plan = plan
        self.masks = Keystream(derive_key(seed, "mask"))
        self.permutations = Permutations(derive_key(seed, "permutation"), plan.arms)
        self.draws = Keystream(derive_key(seed, "choice"))
        self.common_scores = Keystream(derive_key(seed, "common score"))

    def select(self, scores: Array | None, round_: int, iteration: int) -> Array:
        """Returns the owner that is picked, as bool ``(owners,)`` with one true entry.

        Args:
            scores: Scores of all owners, float64 ``(owners,)``, finite and not negative; None in a round of
                exploration. Then all owners get the same score, so that the random permutation decides.
            round_: The round t.
            iteration: The iteration within the round, counted from 0.

        Raises:
            ValueError: A score is negative or not finite, or the scores cannot be added up; see :func:`choose`.
        """
        choice = self._plan.choice_of(iteration)
        if scores is None:
            choice, sent = "argmax", np.full(self._plan.arms, self.common_scores.uniform(round_))
        else:
            sent = self.masks.uniform(round_, iteration) * scores
        order = self.permutations.words(round_, iteration)
        place = choose(choice, sent[order], self.draws.uniform(round_, iteration))
        picked = np.zeros(order.shape, np.bool_)
        picked[order[place]] = True
        return picked


class VerticalResult(NamedTuple):
    """The rewards of a run of the vertical federation.

    Attributes:
        reward: The cumulative reward.
        pulls: How often each owner was picked, int64 ``(owners,)``.
        sums: The sum of each owner's rewards, int64 ``(owners,)``.
        noted: The cumulative reward after each of the rounds in ``note`` of :func:`run_vertical`.

    Example:
        >>> from fedbandit_envs.samba import Algorithm
        >>> result = run_vertical([0.2, 0.5, 0.4], Algorithm("ucb"), budget=40, seed=0, note=(20, 40))
        >>> result.reward, int(result.pulls.sum()), len(result.noted)
        (14, 40, 2)
    """

    reward: int
    pulls: Array
    sums: Array
    noted: tuple[int, ...] = ()


def run_vertical(
    means: Sequence[float] | Array, algorithm: Algorithm, budget: int, seed: int, note: Collection[int] = ()
) -> VerticalResult:
    """Runs the vertical federation without encryption and returns the rewards (SAMBA, Figure 3).

    Args:
        means: Means of the owners' Bernoulli arms, ``(owners,)``.
        algorithm: The algorithm that owners play.
        budget: Number of rounds, N.
        seed: The seed of the run, a non-negative integer.
        note: Rounds, rising from K to N, after which the cumulative reward is kept.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range, the algorithm cannot be played by owners with one arm each, or a
            score is not finite or negative.
    """
    plan = SambaPlan.make(algorithm, len(means), budget)
    keys, selector = owner_keys(seed, plan.arms), PlainSelector(plan, seed)
    owners = algorithm.bank(keys, plan.arms, budget)
    arms = [owner_rewards(mean, own.reward) for mean, own in zip(means, keys, strict=True)]
    for place, arm in enumerate(arms):
        owners.observe(place, next(arm))
    noted = [int(owners.sums.sum())] if plan.arms in note else []
    for round_ in range(plan.arms + 1, budget + 1):
        if owners.explores(round_):
            picked = selector.select(None, round_, 0)
        else:
            for iteration in range(plan.iterations):
                picked = selector.select(owners.scores(round_, iteration), round_, iteration)
                owners.mark(iteration, picked)
        place = int(picked.argmax())
        owners.observe(place, next(arms[place]))
        if round_ in note:
            noted.append(int(owners.sums.sum()))
    return VerticalResult(int(owners.sums.sum()), owners.pulls, owners.sums, tuple(noted))
