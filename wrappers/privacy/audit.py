"""Attacks on privatizers: a lower bound on the epsilon that they really give.

An attacker who knows two neighbouring histories watches one agent's releases and guesses which it was. How often that
succeeds bounds epsilon from below, whatever the proof says. What is attacked is the real thing: the problem names its
worst neighbouring histories, federations play them behind the privatizer, and their agents are the samples.
:mod:`fedbandit_envs.wrappers.privacy.attacks` has the events by which histories are told apart.

Rates are bounded by Clopper and Pearson's intervals, and the probability that any of them is wrong is shared out over
all of them, so that a lower bound is too high with probability ``error`` at most.
"""

from dataclasses import dataclass
from typing import NamedTuple

from fedbandit_envs.arrays import Arrays
from fedbandit_envs.claim import Adjacency, Claim, Composition
from fedbandit_envs.problem import Problem
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.attacks import (
    Alarms,
    Both,
    Bound,
    at_least,
    at_most,
    far_end,
    matched_filter,
    midway,
    tails,
)
from fedbandit_envs.wrappers.privacy.samples import Privatize, Samples, Seen, laid_out, lives, look


@dataclass(frozen=True)
class Audit:
    """What an attack has shown.

    Attributes:
        lower_bound: An epsilon, at the claim's delta, below which the mechanism certainly does not stay.
        claim: What the privatizer claims for the same releases.
    """

    lower_bound: float
    claim: Claim

    @property
    def holds(self) -> bool:
        """Whether the attack leaves the claim standing; having no answer claims nothing."""
        return self.claim.epsilon is None or self.lower_bound <= self.claim.epsilon

    @property
    def tightness(self) -> float:
        """The share of the claim that the attack has shown; NaN where nothing is claimed."""
        return self.lower_bound / self.claim.epsilon if self.claim.epsilon else float("nan")


class Rates(NamedTuple):
    """What is known of one event.

    Attributes:
        true_alarms: A lower bound on its rate under the history that makes it likelier.
        false_alarms: An upper bound on its rate under the other.
        bound: What the two prove.
    """

    true_alarms: float
    false_alarms: float
    bound: Bound


class Evidence(NamedTuple):
    """What an attack has seen, to be held against any claim about the same releases.

    Attributes:
        adjacency: What the histories differ in.
        accountant: The books of a federation that was attacked.
        rates: Of every event that was listened for.
    """

    adjacency: Adjacency
    accountant: Accountant
    rates: list[Rates]

    def against(self, delta: float | None, composition: Composition = "exact") -> Audit:
        """Holds the evidence against what the privatizer claims.

        Args:
            delta: The delta at which epsilon is claimed and bounded; pure mechanisms are best attacked at 0. None
                stands for the deltas promised, added up; where they reach 1 nothing is claimed or bounded.
            composition: Of the claim.
        """
        claim = self.accountant.epsilon(delta, composition=composition, adjacency=self.adjacency)
        if claim.delta >= 1:
            return Audit(0.0, claim)
        return Audit(max(bound(true, false, claim.delta) for true, false, bound in self.rates), claim)


def attack(
    privatize: Privatize,
    problem: type[Problem],
    adjacency: Adjacency,
    *,
    releases: int = 1,
    altered: int | None = None,
    samples: int = 200_000,
    error: float = 1e-4,
    horizon: int = 100_000,
    seed: int = 0,
    weights: Arrays | None = None,
) -> Evidence:
    """Attacks a privatizer around a problem.

    Args:
        privatize: Wraps the environment it is given in the privatizer under attack.
        problem: What environments are made of; it names the histories that are to be told apart.
        adjacency: What these differ in. Of several pairs the one that shows most counts.
        releases: Number of windows, each of one round and with a release at its end.
        altered: In how many of the windows, from the first on, the histories differ; in all by default, as basic and
            exact composition of independent releases assume. Parallel composition and continual release speak of 1.
        samples: Number of samples of each history; a quarter as many train the attack before.
        error: Probability that a lower bound is too high.
        horizon: Rounds of an episode, on which shares of epsilon may depend; at least ``releases``.
        seed: Of the noise.
        weights: A matched filter, for an attacker who knows what is best: arrays by name, ``(releases, ...)``, by which
            what is released is added up. None trains one, which takes many samples a value.

    Raises:
        ValueError: The problem names no histories that differ in ``adjacency``.
    """
    pairs = problem.neighbours(adjacency)
    if not pairs:
        raise ValueError(
            f"adjacency is {adjacency!r}, in which no neighbouring histories of {problem.__name__} are known to differ"
        )
    rates: list[Rates] = []
    for pair in pairs:
        stage = lives(problem, pair, releases, altered, horizon)
        training, test = (
            [Samples(privatize, life, number, [seed, part, which]) for which, life in enumerate(stage)]
            for part, number in enumerate((max(samples // 4, 2), samples))
        )
        env = test[0].env
        # All that would leave without noise, which attackers know.
        clear = Both(*(life.clear(env.single_release_space) for life in stage))
        differs = clear.before != clear.after
        if weights is None:
            heard = Both(*(some.all() for some in training))
            filter_ = matched_filter(heard)
            trained = Both(*(look([windows], filter_, differs) for windows in heard))
        else:
            filter_ = laid_out(weights, env.single_release_space)
            trained = Both(*(look(some.draw(), filter_, differs) for some in training))
        tested = Both(*(look(some.draw(), filter_, differs) for some in test))
        ends = Both(clear.before[differs], clear.after[differs])
        # The probability of an error is shared out over pairs; half of it is for what suits the mechanism best.
        share = error / len(pairs) / 2
        gaussian = all(event.kind == "gaussian" for event in env.accountant.events)
        rates += _rates([midway(trained) if gaussian else far_end(ends)], tested, share)
        rates += _rates(tails(trained, ends), tested, share)
    return Evidence(adjacency, env.accountant, rates)


def _rates(alarms: list[Alarms], tested: Both[Seen], error: float) -> list[Rates]:
    """Bounds the rates of events; one of these bounds is wrong with probability ``error`` at most."""
    fired = [Both(alarm.fire(tested.before), alarm.fire(tested.after)) for alarm in alarms]
    # Two bounds for each event.
    share = error / 2 / sum(both.before.shape[1] for both in fired)
    rates = []
    for alarm, both in zip(alarms, fired, strict=True):
        false, true = both if alarm.after else reversed(both)
        rates += [
            Rates(at_least(t, share), at_most(f, share), alarm.bound)
            for t, f in zip(true.T, false.T, strict=True)
        ]
    return rates
