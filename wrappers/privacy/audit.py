"""Attacks on privatizers: a lower bound on the epsilon that they really give.

An attacker who knows two neighbouring histories watches one agent's releases and guesses which it was. How often that
succeeds bounds epsilon from below, whatever has been proven. The attack is on the implementation: the problem names its
worst neighbouring histories, federations play them behind the privatizer, and their agents are the samples.
:mod:`fedbandit_envs.wrappers.privacy.attacks` has the events by which an attacker distinguishes histories.

Rates are bounded by Clopper and Pearson's intervals, and the probability that any of them is wrong is shared out over
all of them, so that a lower bound is too high with probability ``error`` at most.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.claim import Adjacency, Claim, Composition
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.wrappers.privacy import attacks
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.attacks import Alarms, LowerBound, Observed
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer

Privatize = Callable[[FederatedEnv], Privatizer]
"""Wraps the environment it is given in a privatizer."""

# The largest number of agents simulated together, so that their arrays fit the cache, and the largest number of
# released values held in memory (256 MB).
_AGENTS, _HELD = 10_000, 1 << 25


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


class Evidence(NamedTuple):
    """Bounds on the rates of events in the releases under attack, which bound epsilon at any delta.

    Attributes:
        adjacency: What the two histories differ in.
        accountant: The accounts of a federation that was attacked.
        rates: Of every event that was counted, a lower bound on its rate under the history that makes it likelier, an
            upper bound on its rate under the other, and the function that bounds epsilon by these and a delta.
    """

    adjacency: Adjacency
    accountant: Accountant
    rates: list[tuple[float, float, LowerBound]]

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
    rates: list[tuple[float, float, LowerBound]] = []
    for pair in pairs:
        altered_windows = [z < (releases if altered is None else altered) for z in range(releases)]
        training, test = (
            [
                _Samples(
                    privatize,
                    partial(problem, **{**history.settings, "max_cycles": horizon}),
                    [history.action if now else pair.idle for now in altered_windows],
                    number,
                    [seed, part, i],
                )
                for i, history in enumerate((pair.before, pair.after))
            ]
            for part, number in enumerate((max(samples // 4, 2), samples))
        )
        env = test[0].env
        before, after = (some.clear for some in test)
        differs = before != after
        if weights is None:
            released = [np.concatenate([np.stack(list(z)) for z in some.draw()], axis=1) for some in training]
            filter_ = _matched_filter(*released)
            trained = [_observe([windows], filter_, differs) for windows in released]
        else:
            filter_ = _side_by_side(weights, env.single_release_space)
            trained = [_observe(some.draw(), filter_, differs) for some in training]
        tested = [_observe(some.draw(), filter_, differs) for some in test]
        seen = (trained[0], trained[1]), (tested[0], tested[1]), (before[differs], after[differs])
        # The probability of an error is shared out over pairs; half of it is for what suits the mechanism best.
        share = error / len(pairs) / 2
        gaussian = all(event.kind == "gaussian" for event in env.accountant.events)
        rates += _rates([attacks.best_event(gaussian, *seen)], share)
        rates += _rates([*attacks.tail_events(*seen)], share)
    return Evidence(adjacency, env.accountant, rates)


def _rates(alarms: list[Alarms], error: float) -> list[tuple[float, float, LowerBound]]:
    """Bounds the rates of events; one of these bounds is wrong with probability ``error`` at most."""
    # Two bounds for each event.
    share = error / 2 / sum(alarm.true.shape[1] for alarm in alarms)
    return [
        (attacks.rate_at_least(t, share), attacks.rate_at_most(f, share), alarm.lower_bound)
        for alarm in alarms
        for t, f in zip(alarm.true.T, alarm.false.T, strict=True)
    ]


class _Samples:
    """Releases of many agents that all play the same actions; each agent of each episode is one sample.

    Attributes:
        env: The privatized federation whose agents they are.
        clear: One agent's releases without noise, which attackers know, ``(releases, values)``.
    """

    def __init__(
        self,
        privatize: Privatize,
        make: Callable[..., Problem],
        actions: Sequence[Array],
        samples: int,
        seed: Sequence[int],
    ) -> None:
        """Sets a federation up.

        Args:
            privatize: Wraps it.
            make: Makes it, given ``num_agents``.
            actions: What an agent does in each window, an element of the action space.
            samples: The least number of samples, some more may come.
            seed: Of the episodes, and so of the noise.
        """
        self._actions = actions
        self._seed = seed
        clear = list(self._play(make(num_agents=1), 0))
        size = sum(array.size for arrays in clear for array in arrays.values())
        self._episodes = ceil(samples / min(_AGENTS, max(_HELD // size, 1)))
        self.env = privatize(make(num_agents=ceil(samples / self._episodes)))
        self.clear = np.concatenate(
            [_side_by_side(arrays, self.env.single_release_space) for arrays in clear]
        )

    def _play(self, env: FederatedEnv, seed: int) -> Iterator[Arrays]:
        """Plays an episode of one replica, and yields what leaves in each window: arrays by name ``(agents, ...)``."""
        env.reset_batch([seed])
        everyone = np.ones((1, env.max_num_agents), np.bool_)
        for action in self._actions:
            env.step_batch(np.broadcast_to(action, (*everyone.shape, *action.shape)))
            yield {name: array[0] for name, array in env.release(everyone).items()}

    def draw(self) -> Iterator[Iterator[Array]]:
        """Yields each episode's releases, one array ``(agents, values)`` for each window."""
        for seed in np.random.SeedSequence(self._seed).generate_state(self._episodes, np.uint64).tolist():
            windows = self._play(self.env, seed)
            yield (_side_by_side(arrays, self.env.single_release_space) for arrays in windows)


def _side_by_side(arrays: Arrays, layout: spaces.Dict) -> Array:
    """Returns all values of a release, ``(rows, values)``, in the order of a release space; missing arrays are 0."""
    rows = len(next(iter(arrays.values())))
    parts = [arrays.get(name, np.zeros((rows, *(space.shape or ())))) for name, space in layout.items()]
    return np.concatenate([part.reshape(rows, -1) for part in parts], axis=1, dtype=np.float64)


def _observe(episodes: Iterable[Iterable[Array]], weights: Array, differs: Array) -> Observed:
    """Returns the attacker's statistics of the sampled releases.

    Args:
        episodes: See :meth:`_Samples.draw`.
        weights: ``(releases, values)``.
        differs: Whether each value differs between the histories, bool ``(releases, values)``.
    """
    sums, differing = [], []
    for windows in episodes:
        parts = [(values @ w, values[:, d]) for values, w, d in zip(windows, weights, differs, strict=True)]
        sums.append(sum(part[0] for part in parts))
        differing.append(np.concatenate([part[1] for part in parts], axis=1))
    return Observed(np.concatenate(sums), np.concatenate(differing))


def _matched_filter(before: Array, after: Array) -> Array:
    """Returns the weights, ``(releases, values)``, of the linear filter that separates two Gaussian clouds best.

    Args:
        before: All that was released in training under one history, ``(releases, samples, values)``.
        after: Likewise under the other.
    """
    releases, samples, values = before.shape
    before, after = (windows.swapaxes(0, 1).reshape(samples, -1) for windows in (before, after))
    shift = after.mean(axis=0) - before.mean(axis=0)
    covariance = np.atleast_2d(np.cov(before, rowvar=False))
    # Without noise the covariance is singular, and the filter must exist, too.
    ridge = 1e-9 * max(float(np.trace(covariance)), 1e-9) * np.eye(len(shift))
    return np.linalg.solve(covariance + ridge, shift).reshape(releases, values)
