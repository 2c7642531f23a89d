"""The classic bandit algorithms as rules that score arms (SAMBA, Figure 4; thesis, 2.3 and 2.4).

A rule computes an arm's score from that arm's pulls and rewards alone. It also determines whether the arm with the
largest score is pulled, or an arm drawn with probability proportional to its score. Rules are used in two places: in a
policy, which scores all arms of each agent (:mod:`fedbandit_envs.baselines.arms.policies`), and in the vertical
federation, where each data owner scores its one arm and a selector picks an owner (``fedbandit_envs.samba``). The first
axis of arrays, ``rows``, goes over all agents of all replicas; in the vertical federation it has length 1.

Thompson sampling draws from beta posteriors by rejection, with counter-based random numbers. Attempts of different arms
and rounds never use the same random numbers, however many attempts a draw takes.
"""

from math import inf, log
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, inlined_kernel, inner_kernel, kernel
from fedbandit_envs.randomness.draws import Draws, normal_pair, threefry, u32


def arm_keys(seeds: Array, arms: int) -> Array:
    """Returns a key of random numbers for each arm of each agent, uint32 ``(*seeds.shape, arms, 2)``.

    An arm's key does not depend on the number of arms. The keys are made of the random numbers of round 0, which must
    not be used for anything else.

    Args:
        seeds: One seed for each agent of each replica, as given to :meth:`Policy.reset`.
        arms: Number of arms.
    """
    rows = Draws.of_policy(seeds, 0)
    keys = np.empty((*seeds.shape, arms, 2), np.uint32)
    _derive(rows.key, keys)
    return keys


@kernel
def _derive(rows, keys):
    for r in range(keys.shape[0]):
        for j in range(keys.shape[1]):
            for k in range(keys.shape[2]):
                keys[r, j, k, 0], keys[r, j, k, 1] = threefry(rows[r, j, 0], rows[r, j, 1], u32(0), u32(k))


@inlined_kernel
def open_unit(word):
    """Returns a uniform random number in the open interval (0, 1), with 31 random bits, from a random 32-bit word."""
    return np.float64(np.int32(word >> u32(1))) * 2.0**-31 + 2.0**-32


@inlined_kernel
def _first_attempt(shape, normal, word):
    """Returns a gamma variate of scale 1 if a fast test accepts the first attempt of :func:`_gamma`; else -1.

    The fast test needs no logarithm, and accepts most attempts: a uniform number below 1 - 1.7874 d z^4 also passes the
    exact test of :func:`_gamma`, for every d = shape - 1/3 >= 2/3. (At d = 2/3 it is Marsaglia and Tsang's own squeeze,
    1 - 0.0331 x^4.) ``normal`` is a standard normal number x, ``word`` a random 32-bit word, and z = x / sqrt(9 d).
    """
    d = shape - 1.0 / 3.0
    z = normal / np.sqrt(9.0 * d)
    v, square = 1.0 + z, z * z
    return d * (v * v * v) if open_unit(word) < 1.0 - 1.7874 * d * (square * square) else -1.0


@inner_kernel
def _gamma(shape, key0, key1, round_, half):
    """Returns a gamma variate of scale 1 and shape >= 1, by rejection (Marsaglia and Tsang 2000).

    For each key and round the generator gives numbered pairs of random words. Attempt i = 0, 1, ... makes a normal
    number of pair 2i and a uniform number of pair 2i + 1. Of both pairs it uses the member with index ``half`` (0 or
    1), so that two independent variates can be drawn with one key.
    """
    d = shape - 1.0 / 3.0
    pair = 0
    while True:
        x, y = threefry(key0, key1, round_, u32(pair))
        normals = normal_pair(x, y)
        words = threefry(key0, key1, round_, u32(pair + 1))
        normal = np.float64(normals[half])
        v = 1.0 + normal / np.sqrt(9.0 * d)
        if v > 0.0:
            v = v * v * v
            if np.log(open_unit(words[half])) < 0.5 * normal * normal + d * (1.0 - v + np.log(v)):
                return d * v
        pair += 2


@allocating_kernel
def draw_posteriors(key, round_, trials, successes, out):
    """Draws a number from the posterior Beta(1 + successes, 1 + failures) of each arm.

    The draw is g / (g + h) with gamma variates g and h of shapes 1 + successes and 1 + failures.

    Args:
        key: Keys of random numbers, uint32 ``(rows, arms, 2)``.
        round_: Round of each row (an agent of a replica), which selects the random numbers, ``(rows,)``.
        trials: Numbers of successes and failures together, ``(rows, arms)``.
        successes: Numbers of successes, same shape.
        out: Receives the draws, float64, same shape.
    """
    arms = out.shape[1]
    of_success, of_failure = np.empty(arms), np.empty(arms)
    # Contiguous copies of the two halves of the keys, so that the compiler can vectorise the loops over arms.
    key0, key1 = np.empty(arms, np.uint32), np.empty(arms, np.uint32)
    for r in range(out.shape[0]):
        now = u32(round_[r])
        for k in range(arms):
            key0[k], key1[k] = key[r, k, 0], key[r, k, 1]
        for k in range(arms):
            x, y = threefry(key0[k], key1[k], now, u32(0))
            first, second = normal_pair(x, y)
            x, y = threefry(key0[k], key1[k], now, u32(1))
            good = np.float64(successes[r, k])
            of_success[k] = _first_attempt(good + 1.0, np.float64(first), x)
            of_failure[k] = _first_attempt(trials[r, k] - good + 1.0, np.float64(second), y)
        for k in range(arms):
            if not of_success[k] > 0.0:
                of_success[k] = _gamma(successes[r, k] + 1.0, key0[k], key1[k], now, 0)
            if not of_failure[k] > 0.0:
                shape = trials[r, k] - successes[r, k] + 1.0
                of_failure[k] = _gamma(shape, key0[k], key1[k], now, 1)
            out[r, k] = of_success[k] / (of_success[k] + of_failure[k])


Choice = Literal["argmax", "proportional"]
"""How an arm is picked: the arm with the largest score, or a random arm with probability proportional to its score."""


class Setting(NamedTuple):
    """The sizes, horizon and random keys that a rule is given before an episode.

    Attributes:
        rows: Number of agents in all replicas together; 1 in the vertical federation.
        arms: Number of arms that the rule scores.
        all_arms: Number of arms of the bandit; more than ``arms`` where a data owner scores only its own arm.
        horizon: T, the number of rounds.
        keys: Keys of random numbers for every arm of every row, uint32 ``(rows, arms, 2)``.
    """

    rows: int
    arms: int
    all_arms: int
    horizon: int
    keys: Array


class Rule:
    """The base class of rules that score each arm by its own pulls and rewards.

    A new rule overrides the methods whose defaults do not fit, most often :meth:`scores`. A round may have several
    iterations: in each the arms are scored and one arm is picked, but only the pick of the last iteration is pulled.

    Attributes:
        choice: How the last iteration of a round picks an arm by the scores.
        iterations: Number of iterations in a round. All but the last pick the arm with the largest score, which
            :meth:`mark` is told.

    Example:
        >>> from fedbandit_envs.baselines.arms.rules import Rule
        >>> class Greedy(Rule):
        ...     def scores(self, round_, pulls, sums, iteration, out):
        ...         out[...] = sums / pulls
    """

    choice: ClassVar[Choice] = "argmax"
    iterations: ClassVar[int] = 1

    def __init__(self) -> None:
        """Makes a rule without parameters; a subclass with parameters overrides this."""

    def begin(self, setting: Setting) -> None:
        """Prepares for a new episode and forgets the last one; by default does nothing."""

    def exploration(self, round_: Array) -> Array | float:
        """Returns the probability of pulling a uniformly random arm in a round; by default 0.

        Args:
            round_: The round t of each row, counted from 1, int64 ``(rows,)``.
        """
        return 0.0

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes scores of all arms into ``out``, by default their mean rewards.

        The score of an arm that was never pulled is not used.

        Args:
            round_: The round t of each row, counted from 1, int64 ``(rows,)``.
            pulls: Numbers of pulls of the arms, float64 ``(rows, arms)``.
            sums: Sums of the arms' rewards, same shape.
            iteration: The iteration within the round, counted from 0.
            out: Receives scores >= 0, float64 ``(rows, arms)``.
        """
        _means(pulls, sums, out)

    def mark(self, iteration: int, picked: Array, active: Array) -> None:
        """Is told the arm that an iteration has picked; by default does nothing.

        Args:
            iteration: The iteration within the round, counted from 0.
            picked: True for the arm that was picked, bool ``(rows, arms)``.
            active: Rows that play in this round, bool ``(rows,)``.
        """


@kernel
def _means(pulls, sums, out):
    for r in range(pulls.shape[0]):
        for k in range(pulls.shape[1]):
            out[r, k] = sums[r, k] / pulls[r, k]


@kernel
def _upper_bounds(round_, log_horizon, scale, pulls, sums, out):
    """Writes ``s / n + sqrt(scale ln t / n)`` for an arm with n pulls and the sum s of rewards, in round t.

    Unless ``log_horizon`` = ln T is negative, it replaces ln t.
    """
    known, factor = 0, 0.0
    for r in range(pulls.shape[0]):
        if round_[r] != known:
            # Most often all rows are in the same round, so that the logarithm is computed just once.
            known = round_[r]
            factor = scale * (np.log(np.float64(known)) if log_horizon < 0.0 else log_horizon)
        for k in range(pulls.shape[1]):
            out[r, k] = sums[r, k] / pulls[r, k] + np.sqrt(factor / pulls[r, k])


@kernel
def _boltzmann(pulls, sums, temperature, out):
    for r in range(pulls.shape[0]):
        for k in range(pulls.shape[1]):
            out[r, k] = np.exp(sums[r, k] / pulls[r, k] / temperature)


@kernel
def _pursue(probability, rate, picked, active):
    for r in range(picked.shape[0]):
        if active[r]:
            for k in range(picked.shape[1]):
                probability[r, k] += rate * (picked[r, k] - probability[r, k])


class EpsilonGreedy(Rule):
    """Epsilon-greedy: scores arms by their mean rewards; with probability epsilon a random arm is pulled.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.arms.rules import EpsilonGreedy, Setting
        >>> rule, scores = EpsilonGreedy(epsilon=0.2), np.empty((1, 2))
        >>> rule.begin(Setting(rows=1, arms=2, all_arms=2, horizon=100, keys=np.zeros((1, 2, 2), np.uint32)))
        >>> rule.scores(np.array([9]), np.array([[4.0, 4.0]]), np.array([[1.0, 3.0]]), iteration=0, out=scores)
        >>> scores.round(2)
        array([[0.25, 0.75]])
    """

    def __init__(self, epsilon: float = 0.1) -> None:
        """Sets epsilon, in [0, 1].

        Raises:
            TypeError: ``epsilon`` is no number.
            ValueError: ``epsilon`` is not in [0, 1].
        """
        self._epsilon = require_number("epsilon", epsilon, 0, 1)

    def exploration(self, round_: Array) -> Array | float:
        """Returns epsilon, the probability of pulling a random arm; see :meth:`Rule.exploration`."""
        return self._epsilon


class EpsilonDecreasing(Rule):
    """Epsilon-decreasing: scores arms by their mean rewards; pulls a random arm with probability min(1, 1 / log2(t)).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.arms.rules import EpsilonDecreasing, Setting
        >>> rule, scores = EpsilonDecreasing(), np.empty((1, 2))
        >>> rule.begin(Setting(rows=1, arms=2, all_arms=2, horizon=100, keys=np.zeros((1, 2, 2), np.uint32)))
        >>> rule.scores(np.array([9]), np.array([[4.0, 4.0]]), np.array([[1.0, 3.0]]), iteration=0, out=scores)
        >>> scores.round(2)
        array([[0.25, 0.75]])
    """

    def exploration(self, round_: Array) -> Array | float:
        """Returns the probability of pulling a random arm, min(1, 1 / log2(t)); see :meth:`Rule.exploration`."""
        return 1.0 / np.maximum(np.log2(round_), 1.0)


LogName = Literal["round", "horizon"]


class UCB(Rule):
    """UCB: scores arms by the upper confidence bounds ``mean + sqrt(scale ln t / n)`` after n pulls, in round t.

    With ``scale=2`` this is UCB1 (Auer, Cesa-Bianchi and Fischer 2002; SAMBA). With ``scale=2`` and ln T, the logarithm
    of the horizon, in place of ln t it is the thesis' form of UCB1 (Algorithm 2.1); with ``scale=1.5`` and ln T the
    scores are CUCB's bounds (Algorithm 2.3).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.arms.rules import UCB, Setting
        >>> rule, scores = UCB(scale=2.0), np.empty((1, 2))
        >>> rule.begin(Setting(rows=1, arms=2, all_arms=2, horizon=100, keys=np.zeros((1, 2, 2), np.uint32)))
        >>> rule.scores(np.array([9]), np.array([[4.0, 4.0]]), np.array([[1.0, 3.0]]), iteration=0, out=scores)
        >>> scores.round(2)
        array([[1.3, 1.8]])
    """

    def __init__(self, scale: float = 2.0, logarithm: LogName = "round") -> None:
        """Sets the constants of the confidence radius.

        Args:
            scale: Factor under the square root, > 0.
            logarithm: ``"round"`` for ln t of the round t, ``"horizon"`` for ln T of the horizon T.

        Raises:
            TypeError: ``scale`` is no number.
            ValueError: A parameter is out of its range.
        """
        self._scale = require_number("scale", scale, 0, inf, open_below=True)
        self._of_horizon = require_choice("logarithm", logarithm, get_args(LogName)) == "horizon"

    def begin(self, setting: Setting) -> None:
        """Stores the logarithm of the horizon, if the bounds use it; see :meth:`Rule.begin`."""
        self._log_horizon = log(setting.horizon) if self._of_horizon else -1.0

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes the arms' upper confidence bounds as scores into ``out``; see :meth:`Rule.scores`."""
        _upper_bounds(round_, self._log_horizon, self._scale, pulls, sums, out)


class Thompson(Rule):
    """Thompson sampling: scores each arm by a draw from Beta(1 + successes, 1 + failures) (Thompson 1933).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.arms.rules import Thompson, Setting
        >>> rule, scores = Thompson(), np.empty((1, 2))
        >>> rule.begin(Setting(rows=1, arms=2, all_arms=2, horizon=100, keys=np.zeros((1, 2, 2), np.uint32)))
        >>> rule.scores(np.array([9]), np.array([[4.0, 4.0]]), np.array([[1.0, 3.0]]), iteration=0, out=scores)
        >>> scores.round(2)
        array([[0.23, 0.6 ]])
    """

    def begin(self, setting: Setting) -> None:
        """Stores a key of random numbers for every arm; see :meth:`Rule.begin`."""
        self._keys = setting.keys

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes a draw from each arm's posterior; see :meth:`Rule.scores`."""
        draw_posteriors(self._keys, round_, pulls, sums, out)


class Softmax(Rule):
    """Softmax: scores arms by exp(mean / temperature), and pulls an arm with probability proportional to its score.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.arms.rules import Softmax, Setting
        >>> rule, scores = Softmax(temperature=0.5), np.empty((1, 2))
        >>> rule.begin(Setting(rows=1, arms=2, all_arms=2, horizon=100, keys=np.zeros((1, 2, 2), np.uint32)))
        >>> rule.scores(np.array([9]), np.array([[4.0, 4.0]]), np.array([[1.0, 3.0]]), iteration=0, out=scores)
        >>> scores.round(2)
        array([[1.65, 4.48]])
    """

    choice: ClassVar[Choice] = "proportional"

    def __init__(self, temperature: float = 0.1) -> None:
        """Sets the temperature tau, at least 1/690, below which exponentials overflow.

        Raises:
            TypeError: ``temperature`` is no number.
            ValueError: ``temperature`` is below 1/690.
        """
        self._temperature = require_number("temperature", temperature, 1 / 690, inf)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes exp(mean / temperature) of each arm as its score into ``out``; see :meth:`Rule.scores`."""
        _boltzmann(pulls, sums, self._temperature, out)


class Pursuit(Rule):
    """Pursuit: pulls arms with probabilities that move towards 1 for the arm with the largest mean, else towards 0.

    A round has two iterations: the first scores arms by their means, to find the arm with the largest, and the second
    by the probabilities, which have been moved.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.arms.rules import Pursuit, Setting
        >>> rule, scores = Pursuit(rate=0.2), np.empty((1, 2))
        >>> rule.begin(Setting(rows=1, arms=2, all_arms=2, horizon=100, keys=np.zeros((1, 2, 2), np.uint32)))
        >>> rule.scores(np.array([9]), np.array([[4.0, 4.0]]), np.array([[1.0, 3.0]]), iteration=1, out=scores)
        >>> scores.round(2)
        array([[0.5, 0.5]])
    """

    choice: ClassVar[Choice] = "proportional"
    iterations: ClassVar[int] = 2

    def __init__(self, rate: float = 0.1) -> None:
        """Sets the rate beta in (0, 1], the share of the distance to 1 or 0 that probabilities move in a round.

        Raises:
            TypeError: ``rate`` is no number.
            ValueError: ``rate`` is not in (0, 1].
        """
        self._rate = require_number("rate", rate, 0, 1, open_below=True)

    def begin(self, setting: Setting) -> None:
        """Sets the probability of every arm to 1 / (number of arms); see :meth:`Rule.begin`."""
        self._probability = np.full((setting.rows, setting.arms), 1.0 / setting.all_arms)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes scores: the mean rewards in iteration 0, the probabilities in iteration 1; see :meth:`Rule.scores`."""
        if iteration == 0:
            _means(pulls, sums, out)
        else:
            out[...] = self._probability

    def mark(self, iteration: int, picked: Array, active: Array) -> None:
        """Moves the arms' probabilities towards 1 for the arm with the largest mean, else towards 0.

        Iteration 0 has picked that arm; nothing happens in iteration 1. See :meth:`Rule.mark`.
        """
        if iteration == 0:
            _pursue(self._probability, self._rate, picked, active)
