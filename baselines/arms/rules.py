"""The classic bandit algorithms as scores of arms, each written once (SAMBA, Figure 4; thesis, 2.3 and 2.4).

A rule says what an arm's score is, from that arm's pulls and rewards alone, and whether an arm is then picked by the
largest score or in proportion. Who picks is not its concern: a row-wise policy picks among the arms of a row
(:mod:`fedbandit_envs.baselines.arms.policy`), and in the vertical federation each owner has the score of its own arm
and a selector picks (:mod:`fedbandit_envs.baselines.arms.owners`). Rows are agents of replicas, or the one federation.
"""

from math import inf, log
from typing import ClassVar, Literal, NamedTuple, Protocol, get_args

import numpy as np

from fedbandit_envs.arms.vertical import Choice
from fedbandit_envs.arrays import Array
from fedbandit_envs.baselines.arms.posteriors import draw_posteriors
from fedbandit_envs.checks import require_choice, require_number
from fedbandit_envs.compiled import kernel


class Setting(NamedTuple):
    """What a rule is told before an episode.

    Attributes:
        rows: Number of rows.
        arms: Number of arms that scores are wanted of.
        all_arms: Number of arms there are; more than ``arms`` where an owner is alone.
        horizon: T, the rounds in all.
        keys: Of draws, one for every arm of every row, uint32 ``(rows, arms, 2)``.
    """

    rows: int
    arms: int
    all_arms: int
    horizon: int
    keys: Array


class Rule(Protocol):
    """Scores arms.

    Attributes:
        choice: How an arm is picked by the scores of the last iteration.
        iterations: How often scores are asked for in a round; of all but the last the largest is marked, no more.
    """

    choice: ClassVar[Choice]
    iterations: ClassVar[int]

    def begin(self, setting: Setting) -> None:
        """Forgets everything and prepares for an episode."""

    def exploration(self, round_: Array) -> Array | float:
        """Returns with what probability an arm is pulled at random in round t, counted from 1, int64 ``(rows,)``."""

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Scores all arms of all rows; what is written for an arm that was never pulled means nothing.

        Args:
            round_: t, counted from 1, int64 ``(rows,)``.
            pulls: How often arms were pulled, float64 ``(rows, arms)``.
            sums: Their rewards, added up, likewise.
            iteration: Of the round, from 0.
            out: Receives scores, float64 ``(rows, arms)``, not negative.
        """

    def mark(self, iteration: int, picked: Array, acting: Array) -> None:
        """Takes in which arm was picked by the scores of an iteration.

        Args:
            iteration: Of the round, from 0.
            picked: Marks, bool ``(rows, arms)``.
            acting: In which rows a round is played, bool ``(rows,)``.
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
            # Most often the same round in all rows.
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
def _pursue(probability, rate, picked, acting):
    for r in range(picked.shape[0]):
        if acting[r]:
            for k in range(picked.shape[1]):
                probability[r, k] += rate * (picked[r, k] - probability[r, k])


class _OneIteration:
    """What most rules are: one iteration, the largest score, no exploration, nothing to keep in mind."""

    choice: ClassVar[Choice] = "argmax"
    iterations: ClassVar[int] = 1

    def begin(self, setting: Setting) -> None:
        """Has nothing to forget; see :meth:`Rule.begin`."""

    def exploration(self, round_: Array) -> Array | float:
        """Never explores at random; see :meth:`Rule.exploration`."""
        return 0.0

    def mark(self, iteration: int, picked: Array, acting: Array) -> None:
        """Learns nothing from marks; see :meth:`Rule.mark`."""


class EpsilonGreedy(_OneIteration):
    """The largest mean; with probability epsilon an arm at random."""

    def __init__(self, epsilon: float = 0.1) -> None:
        """Sets epsilon, in [0, 1].

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        require_number("epsilon", epsilon, 0, 1)
        self._epsilon = float(epsilon)

    def exploration(self, round_: Array) -> Array | float:
        """Returns epsilon; see :meth:`Rule.exploration`."""
        return self._epsilon

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes means; see :meth:`Rule.scores`."""
        _means(pulls, sums, out)


class EpsilonDecreasing(_OneIteration):
    """The largest mean; with probability 1 / log2(t), at most 1, an arm at random."""

    def exploration(self, round_: Array) -> Array | float:
        """Returns 1 / log2(t); see :meth:`Rule.exploration`."""
        return 1.0 / np.maximum(np.log2(round_), 1.0)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes means; see :meth:`Rule.scores`."""
        _means(pulls, sums, out)


LogName = Literal["round", "horizon"]


class UCB(_OneIteration):
    """The largest ``mean + sqrt(scale ln t / n)``.

    With ``scale=2`` and the logarithm of the round this is UCB1 (Auer, Cesa-Bianchi and Fischer 2002; SAMBA), with that
    of the horizon the thesis' (Algorithm 2.1), and with ``scale=1.5`` besides CUCB's bounds (Algorithm 2.3).
    """

    def __init__(self, scale: float = 2.0, logarithm: LogName = "round") -> None:
        """Sets the radius.

        Args:
            scale: Under the root; > 0.
            logarithm: Of the ``"round"``, ln t, or of the ``"horizon"``, ln T.

        Raises:
            TypeError: ``scale`` is no number.
            ValueError: A parameter is out of its range.
        """
        require_number("scale", scale, 0, inf, open_below=True)
        require_choice("logarithm", logarithm, get_args(LogName))
        self._scale = float(scale)
        self._of_horizon = logarithm == "horizon"

    def begin(self, setting: Setting) -> None:
        """Takes note of the horizon; see :meth:`Rule.begin`."""
        self._log_horizon = log(setting.horizon) if self._of_horizon else -1.0

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes upper confidence bounds; see :meth:`Rule.scores`."""
        _upper_bounds(round_, self._log_horizon, self._scale, pulls, sums, out)


class Thompson(_OneIteration):
    """The largest of draws from Beta(1 + successes, 1 + failures), one an arm (Thompson 1933)."""

    def begin(self, setting: Setting) -> None:
        """Takes a key for every arm; see :meth:`Rule.begin`."""
        self._keys = setting.keys

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Draws from posteriors; see :meth:`Rule.scores`."""
        draw_posteriors(self._keys, round_, pulls, sums, out)


class Softmax(_OneIteration):
    """An arm with a probability in proportion to exp(mean / temperature)."""

    choice: ClassVar[Choice] = "proportional"

    def __init__(self, temperature: float = 0.1) -> None:
        """Sets tau, at least 1/690, beyond which an exponential is too large for a number.

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        require_number("temperature", temperature, 1 / 690, inf)
        self._temperature = float(temperature)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes exp(mean / temperature); see :meth:`Rule.scores`."""
        _boltzmann(pulls, sums, self._temperature, out)


class Pursuit:
    """An arm with a probability that moves a part of the way to 1 for the largest mean, and to 0 for all others."""

    choice: ClassVar[Choice] = "proportional"
    iterations: ClassVar[int] = 2

    def __init__(self, rate: float = 0.1) -> None:
        """Sets beta, the part of the way that probabilities move in a round, in (0, 1].

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        require_number("rate", rate, 0, 1, open_below=True)
        self._rate = float(rate)

    def begin(self, setting: Setting) -> None:
        """Gives all arms the same probability; see :meth:`Rule.begin`."""
        self._probability = np.full((setting.rows, setting.arms), 1.0 / setting.all_arms)

    def exploration(self, round_: Array) -> Array | float:
        """Never explores but by its probabilities; see :meth:`Rule.exploration`."""
        return 0.0

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes means, then probabilities; see :meth:`Rule.scores`."""
        if iteration == 0:
            _means(pulls, sums, out)
        else:
            out[...] = self._probability

    def mark(self, iteration: int, picked: Array, acting: Array) -> None:
        """Moves probabilities towards the arm of the largest mean; see :meth:`Rule.mark`."""
        if iteration == 0:
            _pursue(self._probability, self._rate, picked, acting)
