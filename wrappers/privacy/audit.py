"""Audits: attacks on running privatizers, which give a lower bound on the epsilon of an implementation.

An attacker who knows two neighbouring histories watches one agent's releases and guesses which of the two it was. How
often the guess is right bounds epsilon from below, whatever has been proven. The attack is on the running code: the
problem names its worst neighbouring histories, federations play them inside the privatizer, and each agent's releases
are one sample (:func:`attack`). Rates are bounded by Clopper and Pearson's confidence intervals, which fail with a
probability of ``error`` at most.

An attack raises an alarm when the releases look like those of one of the two histories. The alarm is true under that
history and false under the other. The rates of true and of false alarms bound epsilon from below:

* For Gaussian noise: a matched filter (the log-likelihood ratio of the releases) with a threshold in the middle between
  the two histories. The rates bound mu of Gaussian differential privacy, and mu gives epsilon. This can refute that the
  releases are Gaussian with the claimed mu.
* For mechanisms of pure differential privacy: every number that differs between the histories lies at its true value
  (without noise) under the second history or beyond it, where the likelihood ratio is largest. The ratio of the two
  rates bounds epsilon.
* For all mechanisms: releases lie further out than they ever, or hardly ever, do under the other history. The ratio of
  the rates bounds epsilon for any kind of noise. This finds noise that is right in the middle and wrong in the tails,
  because it was clipped or drawn too coarsely.

:func:`attack_stage` attacks by all that one observer of a transport's stage sees. In a real federation with a clip and
the stage, the first agent releases in one history always the same large positive numbers, and in the other one their
negatives, which clipped are the worst neighbours under the adjacency ``agent``. Each replica is one sample. Sums have
Gaussian noise and are attacked as releases are. A shuffled batch is attacked by two statistics. One is its
log-likelihood ratio, if the first agent's message is equally likely to be any of the batch that the observer does not
know. The other one is the message among these that announces the smallest variance, the first one if all are equal: it
is the first agent's if names, order or variances that differ by agent are left in the batch.

References: M. Jagielski, J. Ullman, A. Oprea: Auditing Differentially Private Machine Learning. NeurIPS 2020;
M. Nasr et al.: Tight Auditing of Differentially Private Machine Learning. USENIX Security 2023 (through mu).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil, isfinite
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from gymnasium import spaces
from scipy.special import betaincinv, logsumexp, ndtri

from fedbandit_envs.basics.arrays import Array, Arrays, spread, zeros
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.ledger import flatten
from fedbandit_envs.core.privacy import AGENT, Adjacency, Claim, Composition, History, Neighbours, variance_of
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.schedule import Combined, Stage, StageSpec, make_stage
from fedbandit_envs.wrappers.transport.server import Server

LowerBound = Callable[[float, float, float], float]
"""A function that returns a lower bound on epsilon, given the rates of true and of false alarms, and delta."""

Observed = tuple[Array, Array]
"""The attacker's summary of sampled releases under one history: the weighted sum of all released numbers of each sample
(the matched filter), ``(samples,)``; and the numbers whose true values differ between the histories, ``(samples,
values)``. A sequence of two has those of the first history and of the second one."""

Observer = Literal["server", "fellow", "public"]
"""Who watches a stage: the server, another agent, or whoever sees what is sent to agents."""

Privatize = Callable[[FederatedEnv], Privatizer]
"""A function that returns a given environment, wrapped in the privatizer that is audited."""

Make = Callable[..., FederatedEnv]
"""A function that returns an environment, given its arguments."""

# A number far beyond any reasonable clip.
_LARGE = 1e9
# The most agents simulated together, whose arrays fit the processor's cache; the most numbers held in memory (256 MB),
# and for a stage (8 MB).
_AGENTS, _HELD, _HELD_STAGED = 10_000, 1 << 25, 1 << 20
# Thresholds above which an attack raises an alarm, as quantiles of training samples. A shuffled batch hides who sent
# what, so that its attack needs lower ones, too.
_FAR_OUT, _SHUFFLED = (0.99, 0.999, 1.0), (0.5, 0.8, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class Audit:
    """The result of attacking a privatizer.

    Attributes:
        lower_bound: A lower bound on the mechanism's epsilon at the claim's delta, which the attack has shown.
        claim: The privatizer's claim for the same releases.
    """

    lower_bound: float
    claim: Claim

    @property
    def holds(self) -> bool:
        """Whether the attack does not refute the claim; a claim without an epsilon cannot be refuted."""
        return self.claim.epsilon is None or self.lower_bound <= self.claim.epsilon

    @property
    def tightness(self) -> float:
        """The attack's lower bound divided by the claimed epsilon; NaN if the claimed epsilon is None or 0."""
        return self.lower_bound / self.claim.epsilon if self.claim.epsilon else float("nan")

    def as_json(self) -> dict[str, Any]:
        """Returns the audit as a dict for JSON, in which infinity and NaN become None (null)."""
        bound, tight = (x if isfinite(x) else None for x in (self.lower_bound, self.tightness))
        return {"lower_bound": bound, "claim": self.claim.as_json(), "tightness": tight, "holds": self.holds}


class Evidence(NamedTuple):
    """The result of an attack: bounds on the rates of its alarms, from which epsilon is bounded at any delta.

    Attributes:
        adjacency: Name of the adjacency: the part of the data in which the two histories differ.
        claim: A function that returns the claim of a federation that was attacked, given ``delta``, ``composition`` and
            ``adjacency``.
        rates: For every kind of alarm, a lower bound on its rate under the history that makes it likelier, an
            upper bound on its rate under the other, and the function that bounds epsilon by these two and a delta.
    """

    adjacency: Adjacency
    claim: Callable[..., Claim]
    rates: list[tuple[float, float, LowerBound]]

    def against(self, delta: float | None, composition: Composition = "exact") -> Audit:
        """Returns the audit of the privatizer's claim at one delta and by one composition.

        Args:
            delta: The delta at which epsilon is claimed and bounded; for pure differential privacy 0 is best. None
                takes the sum of the deltas of all releases; if that is 1 or more, the lower bound is 0.
            composition: How the claim composes the releases.
        """
        claim = self.claim(delta=delta, composition=composition, adjacency=self.adjacency)
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
) -> Evidence:
    """Attacks a privatizer around an environment, and returns the evidence, from which claims can be tested.

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
        privatize: A function that wraps a given environment in the privatizer under attack.
        problem: Class of the environment; its ``neighbours`` returns the worst pairs of neighbouring histories.
        adjacency: Name of the adjacency under which the histories are neighbours. If there are several pairs, all are
            attacked, and the largest lower bound is taken. Under ``agent``, unless the problem returns pairs for it,
            agents release large positive numbers in one history, and their negatives in the other one.
        releases: Number of releases of an agent. One round is played before each of them, its window.
        altered: The number of windows, from the first on, in which the histories differ; None for all, as basic and
            exact composition of independent releases assume. The claims of parallel composition and of continual
            release are about histories that differ in 1 window.
        samples: Number of samples of each history; a quarter as many are drawn before to train the attack. Each
            released number has a weight of its own, of which many need many samples; under ``agent`` each release.
        error: Largest probability with which the lower bound on epsilon may be too high.
        horizon: Rounds of an episode, on which shares of epsilon may depend; at least ``releases``.
        seed: Seed of the noise.

    Raises:
        ValueError: The problem has no neighbouring histories under ``adjacency``.
    """
    pairs = problem.neighbours(adjacency)
    make: Make = partial(cast(Any, problem), max_cycles=horizon)
    if adjacency == AGENT and not pairs:
        action = np.asarray(make(num_agents=1).single_action_space.sample())
        before, after = (History({"number": number}, action) for number in (_LARGE, -_LARGE))
        pairs, make = [Neighbours(before, after, action)], partial(_ConstantReleases, make)
    if not pairs:
        raise ValueError(
            f"adjacency is {adjacency!r}, in which no neighbouring histories of {problem.__name__} are known to differ"
        )
    rates: list[tuple[float, float, LowerBound]] = []
    for pair in pairs:
        altered_windows = [z < (releases if altered is None else altered) for z in range(releases)]
        training, test = [], []
        for i, history in enumerate((pair.before, pair.after)):
            one = partial(make, **history.settings)
            actions = [history.action if now else pair.idle for now in altered_windows]
            training.append(_Samples(privatize, one, actions, max(samples // 4, 2), [seed, 0, i]))
            test.append(_Samples(privatize, one, actions, samples, [seed, 1, i]))
        env, clear = test[0].env, [some.clear for some in test]
        differs = clear[0] != clear[1]
        released = [np.concatenate(list(some.draw()), axis=1) for some in training]
        if adjacency == AGENT:
            known = clear[1] - clear[0]
            weights = known * _matched_filter(
                *(np.einsum("zsv,zv->zs", windows, known)[..., np.newaxis] for windows in released)
            )
        else:
            weights = _matched_filter(*released)
        trained = [_observe([windows], weights, differs) for windows in released]
        tested = [_observe(some.draw(), weights, differs) for some in test]
        ends = clear[0][differs], clear[1][differs]
        # Pairs of histories get equal parts of the error probability.
        gaussian = all(event.kind == "gaussian" for event in env.accountant.events)
        rates += _bounded_rates(gaussian, trained, tested, ends, error / len(pairs))
    return Evidence(adjacency, env.accountant.epsilon, rates)


class _ConstantReleases(FederatedWrapper):
    """A wrapper whose agents release one number in place of all their statistics, in every release.

    Two such federations with opposite numbers are the worst neighbours under the adjacency ``agent``, if the number is
    so large that its releases are clipped. It is one for all agents, or one for each of them, ``(agents,)``.
    """

    layer = "data"
    examples = ()

    def __init__(self, make: Make, number: float | Array, **settings: Any) -> None:
        super().__init__(make(**settings))
        self._number = number

    def _release(self, sends: Array) -> Arrays:
        numbers = np.where(sends, self._number, 0.0)
        released = self.env._release(sends).items()
        return {name: spread(numbers, array) * np.ones(array.shape) for name, array in released}


class _Samples:
    """Samples of one history's releases: many agents play the same actions, and each agent's releases are one sample.

    Attributes:
        env: The privatized federation, with as many agents as are simulated together.
        clear: One agent's releases without noise, which the attacker knows, ``(releases, values)``.
    """

    def __init__(
        self, privatize: Privatize, make: Make, actions: Sequence[Array], samples: int, seed: Sequence[int]
    ) -> None:
        """Builds the federation for at least so many samples, given each agent's action in each window."""
        self._actions, self._seed = actions, seed
        alone = privatize(make(num_agents=1))
        clear = list(self._play(alone, 0, alone.env.release))
        size = sum(array.size for arrays in clear for array in arrays.values())
        self._episodes = ceil(samples / min(_AGENTS, max(_HELD // size, 1)))
        self.env = privatize(make(num_agents=ceil(samples / self._episodes)))
        self.clear = np.concatenate([self._numbers(arrays) for arrays in clear])

    def _play(self, env: Privatizer, seed: int, release: Callable[[Array], Arrays]) -> Iterator[Arrays]:
        """Plays an episode of one replica and yields the releases of each window, arrays by name."""
        env.reset_batch([seed])
        everyone = np.ones((1, env.max_num_agents), np.bool_)
        for action in self._actions:
            env.step_batch(np.broadcast_to(action, (*everyone.shape, *action.shape)))
            yield release(everyone)

    def _numbers(self, arrays: Arrays) -> Array:
        return _side_by_side(arrays, self.env.single_release_space)[0]

    def draw(self) -> Iterator[Array]:
        """Yields the releases of each episode, ``(releases, agents, values)``."""
        for seed in np.random.SeedSequence(self._seed).generate_state(self._episodes, np.uint64).tolist():
            yield np.stack([self._numbers(arrays) for arrays in self._play(self.env, seed, self.env.release)])


def _side_by_side(arrays: Arrays, layout: spaces.Dict, of: Callable[[str], str] = str) -> Array:
    """Returns all numbers in a release as :func:`.flatten` does, in the order of the names in ``layout``.

    Arrays have the names made by ``of``; those that are missing are filled with 0.
    """
    missing = zeros(layout, next(iter(arrays.values())).shape[:2])
    return flatten({name: arrays.get(of(name), missing[name]) for name in layout})


def attack_stage(
    privatize: Privatize,
    problem: type[Problem],
    stage: StageSpec,
    observer: Observer,
    *,
    agents: int = 3,
    releases: int = 1,
    others: float = -1.0,
    samples: int = 20_000,
    error: float = 1e-4,
    seed: int = 0,
) -> Evidence:
    """Attacks the first agent of a federation with a stage, by all that one observer sees, and returns the evidence.

    What the observer sees and knows:

    * under ``aggregator`` the sums that agents receive; a fellow knows its own share of the noise as well, and the
      server and a fellow know the shares of the stage's colluders;
    * under ``server`` the sums that the server passes on; fellows and the public see the same;
    * under ``shuffler`` the batches that the server reads, with announced variances, as a server that sends them on
      shows them to agents; the server and a fellow know which messages are the colluders', a fellow also its own.

    Example:
        >>> from fedbandit_envs.arms.env import ArmsEnv
        >>> from fedbandit_envs.wrappers import GaussianPrivatizer
        >>> def privatize(env):
        ...     return GaussianPrivatizer(env, noise_multiplier=1.0, releases=1, clip=1.0)
        >>> stage = {"name": "aggregator", "honest": 2}
        >>> evidence = attack_stage(privatize, ArmsEnv, stage, "fellow", samples=500)
        >>> evidence.against(delta=0.01).holds
        True

    Args:
        privatize: A function that wraps a given environment in the privatizer under attack, which must have a clip.
        problem: Class of the environment.
        stage: The stage, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
        observer: Who watches.
        agents: Number of agents in a federation.
        releases: Number of releases of each agent, one a round.
        others: What all other agents release in both histories, as a multiple of what the first agent releases in one
            of them: 0 for zeros, 1 or -1 for the same as the first agent in one of the histories.
        samples: Number of samples of each history; a quarter as many are drawn before to train the attack.
        error: Largest probability with which the lower bound on epsilon may be too high.
        seed: Seed of the noise.

    Raises:
        ValueError: Stage and observer are not in :data:`ATTACKED`.
    """
    made = make_stage(stage, agents)
    if made is None or observer not in ATTACKED[made.trust]:
        raise ValueError(
            f"stage is {stage!r} and observer {observer!r}; one of {ATTACKED} is required as stage and observer"
        )
    numbers = np.full((2, agents), others * _LARGE)
    numbers[:, 0] = _LARGE, -_LARGE
    make = partial(cast(Any, problem), num_agents=agents, max_cycles=releases + 1)
    views = [_View(privatize(_ConstantReleases(make, row)), made, observer, releases) for row in numbers]
    clear = np.stack([view.clear() for view in views])
    trained, tested = (
        [view.draw(number, [seed, part, i], clear) for i, view in enumerate(views)]
        for part, number in enumerate((max(samples // 4, 2), samples))
    )
    shuffled = made.trust == "shuffler"
    if shuffled:
        weights, differs = np.array([[1.0, 0.0]]), np.array([[False, True]])
    else:
        weights, differs = _matched_filter(*trained), np.ones((releases, 1), np.bool_)
    seen, held = ([_observe([windows], weights, differs) for windows in pair] for pair in (trained, tested))
    ends = np.zeros(differs.sum()), np.ones(differs.sum())
    best, quantiles = (None, _SHUFFLED) if shuffled else (True, _FAR_OUT)
    return Evidence(AGENT, views[1].claim, _bounded_rates(best, seen, held, ends, error, quantiles))


ATTACKED: Mapping[str, Sequence[Observer]] = {
    "shuffler": ("server", "fellow"),
    "aggregator": ("server", "fellow", "public"),
    "server": ("fellow", "public"),
}
"""The observers that can be attacked, by stage."""


@dataclass(frozen=True)
class _WatchedStage(Stage):
    """A stage that keeps the latest uploads, so that an observer can know some agents' messages.

    Attributes:
        uploads: The uploads of the latest synchronisation by name, ``(replicas, agents, ...)``.
        batch: These without names, as a shuffler's server reads them.
    """

    uploads: Arrays = field(default_factory=dict)
    batch: Arrays = field(default_factory=dict)

    def combined(self, statistic: Arrays, arrived: Array) -> Combined:
        combined = super().combined(statistic, arrived)
        self.uploads.update(statistic)
        self.batch.update(combined.batch or {})
        return combined


class _View:
    """The numbers that an observer sees while one history of the first agent is played through the real stack."""

    def __init__(self, private: Privatizer, stage: Stage, observer: Observer, releases: int) -> None:
        """Puts a transport around a privatized environment: a channel for secure sums, otherwise a server."""
        self._private, self._observer, self._releases = private, observer, releases
        self._stage = _WatchedStage(stage.trust, stage.honest, stage.colluders)
        # The number of agents, the last ones, whose shares of the noise or messages the observer knows.
        self._known = 0 if observer == "public" else stage.colluders + (observer == "fellow")
        self._env = (
            Channel(private, stage=self._stage)
            if stage.trust == "aggregator"
            else Server(private, "every_round", "every_round", stage=self._stage)
        )

    def claim(self, **asked: Any) -> Claim:
        """Returns the claim for the observer, given delta, composition and adjacency."""
        return [claim for claim in self._private.claims(**asked) if claim.observer == self._observer][-1]

    def clear(self) -> Array:
        """Returns the releases of all agents in a round, clipped and without noise, ``(agents, values)``."""
        self._private.reset_batch([0])
        everyone = np.ones((1, self._private.max_num_agents), np.bool_)
        return self._numbers(self._private.env.release(everyone))[0]

    def _numbers(self, arrays: Arrays, of: Callable[[str], str] = str) -> Array:
        """Returns the numbers of released arrays side by side, ``(..., values)``; see :func:`_side_by_side`."""
        return _side_by_side(arrays, self._private.env.single_release_space, of)

    def draw(self, samples: int, seed: Sequence[int], clear: Array) -> Array:
        """Returns what the observer sees in each of some samples, reduced to a few numbers.

        They are the sums in the direction in which the histories differ, ``(releases, samples, 1)``; for batches the
        two statistics of this module, added up over releases, ``(1, samples, 2)``. What all agents release in both
        histories without noise is ``clear``, ``(2, agents, values)``.
        """
        seeds = np.random.SeedSequence(seed).generate_state(samples, np.uint64)
        rows = np.array_split(seeds, ceil(samples * clear[0].size / _HELD_STAGED))
        drawn = np.concatenate([np.stack(list(self._play(row.tolist(), clear))) for row in rows], axis=1)
        return drawn.sum(axis=0, keepdims=True) if self._stage.trust == "shuffler" else drawn

    def _play(self, seeds: list[int], clear: Array) -> Iterator[Array]:
        """Plays one episode and yields what the observer sees in each round, ``(replicas, statistics)``."""
        self._env.reset_batch(seeds)
        towards, agents = clear[1, 0] - clear[0, 0], clear.shape[1]
        action = np.stack([self._env.unwrapped.single_action_space.sample()] * agents)
        for _ in range(self._releases):
            observation = self._env.step_batch(np.stack([action] * len(seeds))).observation
            if self._stage.trust == "shuffler":
                read = self._stage.batch
                messages, variances = self._numbers(read), self._numbers(read, variance_of)
                farther, nearer = (((messages - each[0]) ** 2 / variances / 2).sum(axis=-1) for each in clear)
                other = ((messages - clear[0, 1]) ** 2 / variances / 2).sum(axis=-1)
                own = self._numbers(self._stage.uploads)[:, agents - self._known :]
                known = (messages[:, :, np.newaxis] == own[:, np.newaxis]).all(axis=3).any(axis=2)
                # A message that the observer knows is not the first agent's.
                other = np.where(known, -np.inf, other)
                ratio = logsumexp(other - nearer, axis=1) - logsumexp(other - farther, axis=1)
                first = np.argmin(np.where(known, np.inf, variances[..., 0]), axis=1)
                yield np.stack([ratio, messages[np.arange(len(seeds)), first] @ towards], axis=1)
            elif self._stage.trust == "server":
                yield self._numbers(observation, "inbox_{}".format)[:, -1:] @ towards
            else:
                inboxes = self._numbers(observation, "inbox_{}".format)
                # Each inbox is the sum without the agent's own share, so that all of them show the sum.
                total = inboxes.sum(axis=1, keepdims=True) / (agents - 1)
                shares = total - inboxes[:, agents - self._known :]
                yield (total[:, 0] - shares.sum(axis=1))[:, np.newaxis] @ towards


def _observe(episodes: Iterable[Array], weights: Array, differs: Array) -> Observed:
    """Returns the attacker's summary of sampled releases.

    Args:
        episodes: The releases of each episode, ``(releases, samples, values)``.
        weights: The matched filter: the weight of each released number in the sum, ``(releases, values)``.
        differs: Whether each number differs between the histories, bool ``(releases, values)``.
    """
    sums, differing = [], []
    for windows in episodes:
        sums.append(sum(values @ w for values, w in zip(windows, weights, strict=True)))
        parts = [values[:, d] for values, d in zip(windows, differs, strict=True)]
        differing.append(np.concatenate(parts, axis=1))
    return np.concatenate(sums), np.concatenate(differing)


def _matched_filter(before: Array, after: Array) -> Array:
    """Returns the weights of the linear filter that best separates two Gaussian distributions, ``(releases, values)``.

    The training samples of the releases under both histories have the shape ``(releases, samples, values)``.
    """
    releases, samples, values = before.shape
    before, after = (windows.swapaxes(0, 1).reshape(samples, -1) for windows in (before, after))
    shift = after.mean(axis=0) - before.mean(axis=0)
    covariance = np.atleast_2d(np.cov(before, rowvar=False))
    # Without noise the covariance matrix is singular; a small multiple of the identity makes it invertible.
    ridge = 1e-9 * max(float(np.trace(covariance)), 1e-9) * np.eye(len(shift))
    return np.linalg.solve(covariance + ridge, shift).reshape(releases, values)


def _bounded_rates(
    gaussian: bool | None,
    trained: Sequence[Observed],
    tested: Sequence[Observed],
    ends: tuple[Array, Array],
    error: float,
    quantiles: Sequence[float] = _FAR_OUT,
) -> list[tuple[float, float, LowerBound]]:
    """Raises alarms, and returns :attr:`Evidence.rates`, whose bounds all hold with probability 1 - ``error``.

    One alarm distinguishes the two histories best, given the kind of noise. Others are raised when a sample lies
    further out than nearly all training samples of one history. For these, two numbers of each sample are compared with
    thresholds: the weighted sum of all released numbers, and the largest deviation of a single one from its true value,
    in units of its own noise. They are raised on the side of the second history, true under it and false under the
    first, and on that of the first history.

    Args:
        gaussian: Whether all noise is Gaussian; None for noise of which no best alarm is known.
        trained: Samples of both histories from which the attacker estimates means and thresholds.
        tested: Other samples of both histories, to which alarms are applied.
        ends: The numbers that differ, without noise: under the first history and under the second, each ``(values,)``.
        error: The probability, equal parts of which go to the kinds of alarms.
        quantiles: Thresholds, as quantiles of the same numbers in training samples of the history under which the
            alarm is false; the quantile 1 is the largest of them.
    """
    # Whether true alarms and false ones are raised, each bool ``(samples, alarms)``, and what bounds epsilon by them.
    kinds: list[tuple[Array, Array, LowerBound]] = []
    before, after = (sums.mean() for sums, _ in trained)
    direction = np.sign(after - before)
    if gaussian:
        middle = (before + after) / 2
        false, true = (((sums - middle) * direction > 0)[:, np.newaxis] for sums, _ in tested)
        kinds.append((true, false, epsilon_from_mu))
    elif gaussian is not None:
        towards = np.sign(ends[1] - ends[0])
        false, true = (
            np.all((differing - ends[1]) * towards >= 0, axis=1, keepdims=True) for _, differing in tested
        )
        kinds.append((true, false, epsilon_from_rates))
    raised = []
    for likely, unlikely, side in ((1, 0, direction), (0, 1, -direction)):
        start, step = ends[unlikely], ends[likely] - ends[unlikely]
        # Without noise the standard deviation is 0, which is replaced by a tiny number to avoid a division by 0.
        deviation = np.maximum(trained[unlikely][1].std(axis=0), 1e-9 * np.abs(step))
        unit = np.sign(step) / deviation
        learned, true, false = (
            np.stack([sums * side, ((differing - start) * unit).max(axis=1)], axis=1)
            for sums, differing in (trained[unlikely], tested[likely], tested[unlikely])
        )
        thresholds = np.quantile(learned, quantiles, axis=0)
        raised.append(
            [(extremes[:, np.newaxis] > thresholds).reshape(len(extremes), -1) for extremes in (true, false)]
        )
    true, false = (np.hstack(alarms) for alarms in zip(*raised, strict=True))
    kinds.append((true, false, epsilon_from_rates))
    rates = []
    for true, false, lower_bound in kinds:
        # For each alarm two bounds may fail: the one on the rate of true and the one on the rate of false alarms.
        share = error / len(kinds) / 2 / true.shape[1]
        for t, f in zip(true.T, false.T, strict=True):
            rates.append((rate_at_least(t, share), rate_at_most(f, share), lower_bound))
    return rates


def epsilon_from_mu(true_alarms: float, false_alarms: float, delta: float) -> float:
    """Returns the epsilon at ``delta`` of Gaussian differential privacy, for the mu that the two rates prove.

    mu is at least Phi^-1(true alarms) - Phi^-1(false alarms) (Dong, Roth and Su 2022, equation 5).
    """
    return float(gaussian_epsilon(delta, max(ndtri(true_alarms) - ndtri(false_alarms), 0.0)))


def epsilon_from_rates(true_alarms: float, false_alarms: float, delta: float) -> float:
    """Returns the smallest epsilon >= 0 with (true alarms) <= e^epsilon (false alarms) + delta."""
    return float(np.log(max((true_alarms - delta) / false_alarms, 1.0)))


def rate_at_least(happened: Array, error: float) -> float:
    """Returns Clopper and Pearson's lower bound on the rate of True entries; ``error`` is its failure probability."""
    hits, trials = int(happened.sum()), len(happened)
    return float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0


def rate_at_most(happened: Array, error: float) -> float:
    """Returns Clopper and Pearson's upper bound on the rate of True entries; ``error`` is its failure probability."""
    hits, trials = int(happened.sum()), len(happened)
    return float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0
