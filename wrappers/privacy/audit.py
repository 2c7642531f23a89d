"""Attacks on privatizers: a lower bound on the epsilon that they really give.

An attacker who knows two neighbouring histories watches one agent's releases and guesses which it was. How often that
succeeds bounds epsilon from below, whatever the proof says. What is attacked is the real thing: the problem names its
worst neighbouring histories, federations play them behind the privatizer, and their agents are the samples.
:mod:`fedbandit_envs.wrappers.privacy.attacks` has the events by which an attacker distinguishes histories.

Rates are bounded by Clopper and Pearson's intervals, and the probability that any of them is wrong is shared out over
all of them, so that a lower bound is too high with probability ``error`` at most.
"""

from dataclasses import dataclass
from typing import NamedTuple

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.core.claim import Adjacency, Claim, Composition
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.wrappers.privacy import attacks
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.attacks import AlarmEvents, Both, LowerBound
from fedbandit_envs.wrappers.privacy.samples import (
    AgentHistory,
    ObservedReleases,
    Privatize,
    Samples,
    observe,
    side_by_side,
)


@dataclass(frozen=True)
class Audit:
    """The outcome of an attack on a claim.

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
        """The attack's lower bound on epsilon as a share of the claimed epsilon; NaN without a claim."""
        return self.lower_bound / self.claim.epsilon if self.claim.epsilon else float("nan")


class Rates(NamedTuple):
    """Confidence bounds on the rates of an event that separates two histories.

    Attributes:
        true_alarms: A lower bound on its rate under the history that makes it likelier.
        false_alarms: An upper bound on its rate under the other.
        lower_bound: The epsilon that the two prove.
    """

    true_alarms: float
    false_alarms: float
    lower_bound: LowerBound


class Evidence(NamedTuple):
    """Bounds on the rates of events in the releases under attack, which bound epsilon at any delta.

    Attributes:
        adjacency: What the two histories differ in.
        accountant: The accounts of a federation that was attacked.
        rates: Of every event that was counted.
    """

    adjacency: Adjacency
    accountant: Accountant
    rates: list[Rates]

    def against(self, delta: float | None, composition: Composition = "exact") -> Audit:
        """Returns the audit of what the privatizer claims, at one delta and by one composition.

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
    """Attacks a privatizer around a problem, and returns what the attack has shown.

    Example:
        >>> from fedbandit_envs.procurement.env import ProcurementEnv
        >>> from fedbandit_envs.wrappers import LaplacePrivatizer
        >>> from fedbandit_envs.wrappers.privacy.audit import attack
        >>> def privatize(env):
        ...     return LaplacePrivatizer(env, epsilon=1.0, releases=1)
        >>> evidence = attack(privatize, ProcurementEnv, "one-outcome", samples=2000)
        >>> evidence.against(delta=0.0).holds
        True

    Args:
        privatize: Wraps the environment it is given in the privatizer under attack.
        problem: Class of the environment; it names its worst neighbouring histories.
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
        altered_windows = [z < (releases if altered is None else altered) for z in range(releases)]
        histories = [
            AgentHistory(
                problem,
                {**history.settings, "max_cycles": horizon},
                [history.action if now else pair.idle for now in altered_windows],
            )
            for history in (pair.before, pair.after)
        ]
        training, test = (
            [Samples(privatize, history, number, [seed, part, i]) for i, history in enumerate(histories)]
            for part, number in enumerate((max(samples // 4, 2), samples))
        )
        env = test[0].env
        # All that would leave without noise, which attackers know.
        clear = Both(*(history.without_noise(env.single_release_space) for history in histories))
        differs = clear.before != clear.after
        if weights is None:
            released = Both(*(some.all() for some in training))
            filter_ = attacks.matched_filter(released)
            trained = Both(*(observe([windows], filter_, differs) for windows in released))
        else:
            filter_ = side_by_side(weights, env.single_release_space)
            trained = Both(*(observe(some.draw(), filter_, differs) for some in training))
        tested = Both(*(observe(some.draw(), filter_, differs) for some in test))
        ends = Both(clear.before[differs], clear.after[differs])
        # The probability of an error is shared out over pairs; half of it is for what suits the mechanism best.
        share = error / len(pairs) / 2
        gaussian = all(event.kind == "gaussian" for event in env.accountant.events)
        best = attacks.midpoint_event(trained) if gaussian else attacks.far_end_event(ends)
        rates += _rates([best], tested, share) + _rates(attacks.tail_events(trained, ends), tested, share)
    return Evidence(adjacency, env.accountant, rates)


def _rates(alarms: list[AlarmEvents], tested: Both[ObservedReleases], error: float) -> list[Rates]:
    """Bounds the rates of events; one of these bounds is wrong with probability ``error`` at most."""
    happened = [Both(alarm.happened(tested.before), alarm.happened(tested.after)) for alarm in alarms]
    # Two bounds for each event.
    share = error / 2 / sum(both.before.shape[1] for both in happened)
    rates = []
    for alarm, both in zip(alarms, happened, strict=True):
        false, true = both if alarm.after else reversed(both)
        rates += [
            Rates(attacks.rate_at_least(t, share), attacks.rate_at_most(f, share), alarm.lower_bound)
            for t, f in zip(true.T, false.T, strict=True)
        ]
    return rates
