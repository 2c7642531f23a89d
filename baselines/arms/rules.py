"""The classic bandit algorithms as scores of arms (SAMBA, Figure 4; thesis, 2.3 and 2.4).

A rule computes an arm's score from that arm's pulls and rewards alone, and sets whether the arm with the largest score
is pulled or one in proportion to scores. It is used in two places: a policy picks among the arms of a row
(:mod:`fedbandit_envs.baselines.arms.policy`), and in the vertical federation each owner scores its own arm and a
selector picks (``fedbandit_envs.samba``). Rows are agents of replicas, or the one vertical federation.
"""

from math import inf, log
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.baselines.arms.posteriors import draw_posteriors
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.basics.compiled import kernel

Choice = Literal["argmax", "proportional"]
"""The choice of an arm from scores: the arm of the largest, or a random one in proportion to the scores."""


class Setting(NamedTuple):
    """The sizes, horizon and random keys that a rule is given before an episode.

    Attributes:
        rows: Number of rows.
        arms: Number of arms that are scored.
        all_arms: Number of arms in all; more than ``arms`` where an owner scores its own alone.
        horizon: T, the number of rounds.
        keys: Keys of random numbers for every arm of every row, uint32 ``(rows, arms, 2)``.
    """

    rows: int
    arms: int
    all_arms: int
    horizon: int
    keys: Array


class Rule:
    """Scores arms, each by its own pulls and rewards; a new rule overrides :meth:`scores` and what else it needs.

    Attributes:
        choice: How an arm is picked by the scores of the last iteration.
        iterations: Number of times that scores are asked for in a round; of all but the last one the arm with the
            largest score is only marked.

    Example:
        >>> from fedbandit_envs.baselines.arms.rules import Rule
        >>> class Greedy(Rule):
        ...     def scores(self, round_, pulls, sums, iteration, out):
        ...         out[...] = sums / pulls
    """

    choice: ClassVar[Choice] = "argmax"
    iterations: ClassVar[int] = 1

    def __init__(self) -> None:
        """Takes no constants; a rule that has some overrides this."""

    def begin(self, setting: Setting) -> None:
        """Forgets the last episode and prepares for one; by default there is nothing to do."""

    def exploration(self, round_: Array) -> Array | float:
        """Returns the probability of pulling an arm at random in round t; by default 0.

        Args:
            round_: t, counted from 1, int64 ``(rows,)``.
        """
        return 0.0

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Scores all arms of all rows; what is written for an arm that was never pulled is not used.

        Args:
            round_: t, counted from 1, int64 ``(rows,)``.
            pulls: Numbers of pulls, float64 ``(rows, arms)``.
            sums: Sums of rewards, same shape.
            iteration: Of the round, from 0.
            out: Receives scores >= 0, float64 ``(rows, arms)``.

        Raises:
            NotImplementedError: The rule does not override this method.
        """
        raise NotImplementedError(f"{type(self).__name__} does not override scores, which every rule must")

    def mark(self, iteration: int, picked: Array, active: Array) -> None:
        """Takes in which arm had the largest score of an iteration; by default it is not used.

        Args:
            iteration: Of the round, from 0.
            picked: The arm's mark, bool ``(rows, arms)``.
            active: Rows that play in this round, bool ``(rows,)``.
        """


@kernel
def _means(pulls, sums, out):
    for r in range(pulls.shape[0]):
        for k in range(pulls.shape[1]):
            out[r, k] = sums[r, k] / pulls[r, k]


@kernel
def _upper_bounds(round_, log_horizon, scale, pulls, sums, out):
    """Writes ``s / n + sqrt(scale ln t / n)``; with ln T in the place of ln t, unless ``log_horizon`` is negative."""
    known, factor = 0, 0.0
    for r in range(pulls.shape[0]):
        if round_[r] != known:
            # Rows are most often in the same round, so that the logarithm is computed once.
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
    """Scores arms by their means; with probability epsilon a random arm is pulled.

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
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        self._epsilon = require_number("epsilon", epsilon, 0, 1)

    def exploration(self, round_: Array) -> Array | float:
        """Returns epsilon; see :meth:`Rule.exploration`."""
        return self._epsilon

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes means; see :meth:`Rule.scores`."""
        _means(pulls, sums, out)


class EpsilonDecreasing(Rule):
    """Scores arms by their means; with probability min(1, 1 / log2(t)) a random arm is pulled.

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
        """Returns 1 / log2(t); see :meth:`Rule.exploration`."""
        return 1.0 / np.maximum(np.log2(round_), 1.0)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes means; see :meth:`Rule.scores`."""
        _means(pulls, sums, out)


LogName = Literal["round", "horizon"]


class UCB(Rule):
    """Scores arms by the upper confidence bounds ``mean + sqrt(scale ln t / n)``.

    With ``scale=2`` and the logarithm of the round this is UCB1 (Auer, Cesa-Bianchi and Fischer 2002; SAMBA), with that
    of the horizon the thesis' form (Algorithm 2.1); with the horizon and ``scale=1.5`` these are CUCB's bounds
    (Algorithm 2.3).

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
        """Sets the radius.

        Args:
            scale: Factor under the root, > 0.
            logarithm: ``"round"`` for ln t, ``"horizon"`` for ln T.

        Raises:
            TypeError: ``scale`` is no number.
            ValueError: A parameter is out of its range.
        """
        self._scale = require_number("scale", scale, 0, inf, open_below=True)
        self._of_horizon = require_choice("logarithm", logarithm, get_args(LogName)) == "horizon"

    def begin(self, setting: Setting) -> None:
        """Stores the horizon's logarithm; see :meth:`Rule.begin`."""
        self._log_horizon = log(setting.horizon) if self._of_horizon else -1.0

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes upper confidence bounds; see :meth:`Rule.scores`."""
        _upper_bounds(round_, self._log_horizon, self._scale, pulls, sums, out)


class Thompson(Rule):
    """Scores arms by draws from Beta(1 + successes, 1 + failures), one an arm (Thompson 1933).

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
        """Draws from posteriors; see :meth:`Rule.scores`."""
        draw_posteriors(self._keys, round_, pulls, sums, out)


class Softmax(Rule):
    """Scores arms by exp(mean / temperature); an arm is pulled in proportion to its score.

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
        """Sets tau, at least 1/690, below which exponentials overflow.

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        self._temperature = require_number("temperature", temperature, 1 / 690, inf)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes exp(mean / temperature); see :meth:`Rule.scores`."""
        _boltzmann(pulls, sums, self._temperature, out)


class Pursuit(Rule):
    """Scores arms by probabilities that move towards 1 for the arm with the largest mean and towards 0 for the others.

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
        """Sets beta, the part of the way that probabilities move in a round, in (0, 1].

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        self._rate = require_number("rate", rate, 0, 1, open_below=True)

    def begin(self, setting: Setting) -> None:
        """Sets all probabilities to 1 / arms; see :meth:`Rule.begin`."""
        self._probability = np.full((setting.rows, setting.arms), 1.0 / setting.all_arms)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes means in iteration 0 and probabilities in iteration 1; see :meth:`Rule.scores`."""
        if iteration == 0:
            _means(pulls, sums, out)
        else:
            out[...] = self._probability

    def mark(self, iteration: int, picked: Array, active: Array) -> None:
        """Moves probabilities towards the arm with the largest mean; see :meth:`Rule.mark`."""
        if iteration == 0:
            _pursue(self._probability, self._rate, picked, active)
