"""Attacks on privatizers: a lower bound on the epsilon that they really give.

An attacker who knows two neighbouring histories watches one agent's releases and guesses which it was. How
often that succeeds bounds epsilon from below, whatever the proof says. The attack goes through the
privatizer's own ``release``: it wraps a tiny federation whose agents are the samples, half of them with the
one history and half with the other.

* Gaussian noise: the matched filter (the log-likelihood ratio of what is released) with one fixed threshold,
  filter and threshold from training samples, or from what the attacker knows of the noise. The rates of true and
  false alarms bound mu, and mu gives epsilon: what is refuted is that the releases are Gaussian with the mu that
  is claimed.
* Pure mechanisms: the event that every value that differs lies at or beyond its far end, where their
  likelihood ratio is largest; the ratio of the two rates bounds epsilon.

Rates are bounded by Clopper and Pearson's intervals, so a bound is too high with probability ``error`` at
most.

References:
    * M. Jagielski, J. Ullman, A. Oprea: Auditing Differentially Private Machine Learning. NeurIPS 2020.
    * M. Nasr et al.: Tight Auditing of Differentially Private Machine Learning. USENIX Security 2023 (through
      mu).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from scipy.special import betaincinv, ndtri

from fedbandit_envs.claim import Adjacency, Claim, Composition
from fedbandit_envs.federation import Array, Arrays, BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.wrappers.neighbours import Neighbours
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer


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


def audit(
    privatize: Callable[[FederatedEnv], Privatizer],
    neighbours: Sequence[Neighbours],
    delta: float | None,
    composition: Composition = "exact",
    adjacency: Adjacency = "one-quantity",
    samples: int = 200_000,
    error: float = 1e-4,
    horizon: int = 100_000,
    seed: int = 0,
    weights: Arrays | None = None,
) -> Audit:
    """Attacks a privatizer.

    Args:
        privatize: Wraps the environment it is given in the privatizer under attack.
        neighbours: Histories to tell apart; the strongest attack counts.
        delta: The delta at which epsilon is claimed and bounded; pure mechanisms are best attacked at 0. None stands
            for the deltas promised, added up; where they reach 1 nothing is claimed or bounded.
        composition: Of the claim under attack.
        adjacency: Of the claim under attack: what ``neighbours`` differ in.
        samples: Number of samples of each history.
        error: Probability that the lower bound is too high.
        horizon: Rounds of an episode, on which shares of epsilon may depend.
        seed: Of the noise.
        weights: The matched filter of Gaussian noise, for an attacker who knows it: arrays by name, ``(releases, ...)``
            as in ``neighbours``, by which what is released is added up. None trains one, which takes many samples a
            value and memory for all of what they release.
    """
    lower_bound = 0.0
    bound: Callable[[float, float, float], float]
    for history in neighbours:
        env = privatize(_Samples(history, samples, horizon))
        releases = len(next(iter(history.before.values())))
        seen = _releases(env, releases, 2 * seed)
        before, after = _side_by_side(seen) if weights is None else _added_up(seen, weights)
        claim = env.accountant.epsilon(delta, composition=composition, adjacency=adjacency)
        if claim.delta >= 1:
            return Audit(0.0, claim)
        if all(event.kind == "gaussian" for event in env.accountant.events):
            fires = (
                _matched_filter(*_side_by_side(_releases(env, releases, 2 * seed + 1)))
                if weights is None
                else _midway(history, weights)
            )
            bound = _epsilon_through_mu
        else:
            fires = _far_end(history)
            bound = _epsilon_of_rates
        true_alarms = _at_least(fires(after), error / len(neighbours) / 2)
        false_alarms = _at_most(fires(before), error / len(neighbours) / 2)
        lower_bound = max(lower_bound, bound(true_alarms, false_alarms, claim.delta))
    return Audit(lower_bound, claim)


def _releases(env: Privatizer, releases: int, seed: int) -> Iterator[Arrays]:
    """Yields what all samples release, arrays by name ``(samples of both histories, ...)``."""
    env.reset_batch([seed])
    everyone = np.ones((1, env.max_num_agents), np.bool_)
    for _ in range(releases):
        yield {name: array[0] for name, array in env.release(everyone).items()}


def _side_by_side(seen: Iterator[Arrays]) -> tuple[Array, Array]:
    """Returns what is released under the one history and under the other, each ``(samples, values)``."""
    values = np.concatenate(
        [array.reshape(len(array), -1) for arrays in seen for array in arrays.values()], axis=1
    )
    half = len(values) // 2
    return values[:half], values[half:]


def _added_up(seen: Iterator[Arrays], weights: Arrays) -> tuple[Array, Array]:
    """Returns weighted sums of what is released under the one history and under the other, each ``(samples,)``."""
    sums = sum(
        np.tensordot(arrays[name], array[z], array.ndim - 1)
        for z, arrays in enumerate(seen)
        for name, array in weights.items()
    )
    assert isinstance(sums, np.ndarray)
    half = len(sums) // 2
    return sums[:half], sums[half:]


def _midway(history: Neighbours, weights: Arrays) -> Callable[[Array], Array]:
    """Fires where weighted sums are nearer to what they are without noise under the other history."""
    before, after = (
        sum(float((array * weights[name]).sum()) for name, array in arrays.items() if name in weights)
        for arrays in (history.before, history.after)
    )
    return lambda sums: (sums - (before + after) / 2) * (after - before) > 0


def _matched_filter(before: Array, after: Array) -> Callable[[Array], Array]:
    """Trains the linear filter that tells two Gaussian clouds of one shape apart, threshold midway."""
    middle, shift = (before.mean(axis=0) + after.mean(axis=0)) / 2, after.mean(axis=0) - before.mean(axis=0)
    covariance = np.atleast_2d(np.cov(before, rowvar=False))
    # Where there is no noise the filter must exist all the same.
    ridge = 1e-9 * max(float(np.trace(covariance)), 1e-9) * np.eye(len(shift))
    weights = np.linalg.solve(covariance + ridge, shift)
    return lambda values: (values - middle) @ weights > 0


def _far_end(history: Neighbours) -> Callable[[Array], Array]:
    """Fires where every value that differs lies at the far end of the difference or beyond."""
    # Values are released array by array within a release, as _side_by_side has them.
    before, after = (
        np.concatenate(
            [array.reshape(len(array), -1) for array in arrays.values()], axis=1, dtype=np.float64
        ).ravel()
        for arrays in (history.before, history.after)
    )
    differs = before != after
    direction = np.sign(after - before)[differs]
    return lambda values: np.all((values[:, differs] - after[differs]) * direction >= 0, axis=1)


def _epsilon_through_mu(true_alarms: float, false_alarms: float, delta: float) -> float:
    """Uses mu >= Phi^-1(true alarms) - Phi^-1(false alarms) (Dong, Roth and Su 2022, equation 5)."""
    return float(gaussian_epsilon(delta, max(ndtri(true_alarms) - ndtri(false_alarms), 0.0)))


def _epsilon_of_rates(true_alarms: float, false_alarms: float, delta: float) -> float:
    """Uses true alarms <= e^epsilon false alarms + delta."""
    return float(np.log(max((true_alarms - delta) / false_alarms, 1.0)))


def _at_least(fired: Array, error: float) -> float:
    """Returns Clopper and Pearson's lower bound of a rate."""
    hits, trials = int(fired.sum()), len(fired)
    return float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0


def _at_most(fired: Array, error: float) -> float:
    """Returns Clopper and Pearson's upper bound of a rate."""
    hits, trials = int(fired.sum()), len(fired)
    return float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0


class _Samples(FederatedEnv):
    """A federation whose agents are samples: half with one history, half with its neighbour."""

    def __init__(self, history: Neighbours, samples: int, horizon: int) -> None:
        self._history = history
        scale = {
            name: np.broadcast_to(array, (1, 2 * samples, *array.shape))
            for name, array in history.sensitivity.scale.items()
        }
        self._sensitivity = history.sensitivity._replace(scale=scale)
        self._half = samples
        self.max_cycles = horizon
        self.metadata = {"name": "samples"}
        self.possible_agents = [f"agent_{j}" for j in range(2 * samples)]
        self.single_observation_space = spaces.Dict({})
        self.single_action_space = spaces.Discrete(1)
        self.single_release_space = spaces.Dict(
            {name: spaces.Box(-np.inf, np.inf, array.shape[1:]) for name, array in history.before.items()}
        )
        self.action_formats = {}

    @property
    def hidden_space(self) -> spaces.Dict:
        return spaces.Dict({})

    def hidden(self) -> Arrays:
        return {}

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        self._next = 0
        return BatchReset({}, {})

    def step_batch(self, action: Array) -> BatchStep:
        # An attack only ever releases: playing the samples would be a mistake of the attack's.
        raise NotImplementedError("samples are not for playing")

    def sensitivity(self) -> Sensitivity:
        return self._sensitivity

    def release(self, senders: Array) -> Arrays:
        index, self._next = self._next, self._next + 1
        history = self._history
        both = {name: (history.before[name][index], history.after[name][index]) for name in history.before}
        return {name: np.repeat(pair, self._half, axis=0)[np.newaxis] for name, pair in both.items()}
