"""The classic bandit algorithms as rules that score arms (SAMBA, Figure 4; thesis, 2.3 and 2.4).

A rule computes an arm's score from that arm's pulls and rewards alone. It also determines whether the arm with the
largest score is pulled, or an arm drawn with probability proportional to its score. Rules are used in two places: in a
policy, which scores all arms of each agent (:mod:`fedbandit_envs.baselines.arms.policy`), and in the vertical
federation, where each data owner scores its one arm and a selector picks an owner (``fedbandit_envs.samba``). The first
axis of arrays, ``rows``, goes over all agents of all replicas; in the vertical federation it has length 1.
"""

from math import inf, log
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.baselines.arms.posteriors import draw_posteriors
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.basics.compiled import kernel

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

    A new rule overrides :meth:`scores`, and the other methods where the defaults do not fit. A round may have several
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
        """Writes scores of all arms into ``out``; the score of an arm that was never pulled is not used.

        Args:
            round_: The round t of each row, counted from 1, int64 ``(rows,)``.
            pulls: Numbers of pulls of the arms, float64 ``(rows, arms)``.
            sums: Sums of the arms' rewards, same shape.
            iteration: The iteration within the round, counted from 0.
            out: Receives scores >= 0, float64 ``(rows, arms)``.

        Raises:
            NotImplementedError: The rule does not override this method.
        """
        raise NotImplementedError(f"{type(self).__name__} does not override scores, which every rule must")

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

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes the mean reward of each arm as its score into ``out``; see :meth:`Rule.scores`."""
        _means(pulls, sums, out)


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

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes the mean reward of each arm as its score into ``out``; see :meth:`Rule.scores`."""
        _means(pulls, sums, out)


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
