"""Audits of privatizers: attacks that give a lower bound on the epsilon of an implementation.

An attacker who knows two neighbouring histories watches one agent's releases and guesses which of the two it was. How
often the guess is right bounds epsilon from below, whatever has been proven. The attack is on the running code: the
problem names its worst neighbouring histories, federations play them inside the privatizer, and each agent's releases
are one sample. :mod:`fedbandit_envs.wrappers.privacy.attacks` has the alarms by which an attacker distinguishes
histories.

Rates are bounded by Clopper and Pearson's confidence intervals. Their failure probabilities add up to ``error``, so
that the lower bound on epsilon is too high with probability ``error`` at most.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, NamedTuple, cast

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import AGENT, Adjacency, Claim, Composition, History, Neighbours
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.wrappers.privacy import attacks
from fedbandit_envs.wrappers.privacy.attacks import LowerBound
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.stages import spread

Privatize = Callable[[FederatedEnv], Privatizer]
"""A function that returns a given environment, wrapped in the privatizer that is audited."""

# _AGENTS: the largest number of agents simulated together, so that their arrays fit the processor's cache.
# _HELD: the largest number of released numbers that are held in memory (256 MB).
_AGENTS, _HELD = 10_000, 1 << 25


@dataclass(frozen=True)
class Audit:
    """The result of attacking a privatizer: the epsilon that the attack proves, and the claim that it tests.

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
    weights: Arrays | None = None,
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
            the agents release in one history always the same large positive numbers, and in the other one their
            negatives.
        releases: Number of releases of an agent. One round is played before each of them; this round is called its
            window.
        altered: The number of windows, from the first on, in which the histories differ. By default they differ in all,
            as basic and exact composition of independent releases assume. The claims of parallel composition and of
            continual release are about histories that differ in 1 window.
        samples: Number of samples of each history; a quarter as many are drawn before to train the attack.
        error: Largest probability with which the lower bound on epsilon may be too high.
        horizon: Rounds of an episode, on which shares of epsilon may depend; at least ``releases``.
        seed: Seed of the noise.
        weights: The matched filter, if the attacker knows the best one: the weight of each released number, arrays by
            name of the released array, ``(releases, ...)``. None estimates the filter from training samples, of which
            many are needed for each number; under ``agent`` only the weights of whole releases are estimated, and
            numbers within a release are weighted by how much they differ.

    Raises:
        ValueError: The problem has no neighbouring histories under ``adjacency``.
    """
    pairs = problem.neighbours(adjacency)
    make: Callable[..., FederatedEnv] = partial(cast(Any, problem), max_cycles=horizon)
    if adjacency == AGENT and not pairs:
        action = np.asarray(make(num_agents=1).single_action_space.sample())
        before, after = (History({"number": number}, action) for number in (LARGE, -LARGE))
        pairs, make = [Neighbours(before, after, action)], partial(_opposed, make)
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
                    partial(make, **history.settings),
                    [history.action if now else pair.idle for now in altered_windows],
                    number,
                    [seed, part, i],
                )
                for i, history in enumerate((pair.before, pair.after))
            ]
            for part, number in enumerate((max(samples // 4, 2), samples))
        )
        env = test[0].env
        clear = [some.clear for some in test]
        differs = clear[0] != clear[1]
        if weights is None:
            released = [np.concatenate([np.stack(list(z)) for z in some.draw()], axis=1) for some in training]
            if adjacency == AGENT:
                known = clear[1] - clear[0]
                filter_ = known * attacks.matched_filter(
                    *(np.einsum("zsv,zv->zs", windows, known)[..., np.newaxis] for windows in released)
                )
            else:
                filter_ = attacks.matched_filter(*released)
            trained = [attacks.observe([windows], filter_, differs) for windows in released]
        else:
            filter_ = side_by_side(weights, env.single_release_space)
            trained = [attacks.observe(some.draw(), filter_, differs) for some in training]
        tested = [attacks.observe(some.draw(), filter_, differs) for some in test]
        seen = (trained[0], trained[1]), (tested[0], tested[1]), (clear[0][differs], clear[1][differs])
        # Pairs of histories get equal parts of the error probability. Half of each part is for the one alarm that is
        # best for the kind of noise, half for the alarms in the tails.
        share = error / len(pairs) / 2
        gaussian = all(event.kind == "gaussian" for event in env.accountant.events)
        rates += attacks.bounded_rates([attacks.best_event(gaussian, *seen)], share)
        rates += attacks.bounded_rates([*attacks.tail_events(*seen)], share)
    return Evidence(adjacency, env.accountant.epsilon, rates)


class ConstantReleases(FederatedWrapper):
    """A wrapper whose agents release one number in place of all their statistics, in every release.

    Two such federations with opposite numbers are the worst neighbours under the adjacency ``agent``, if the number is
    so large that its releases are clipped: each release differs by twice the largest norm, always in one direction.

    Example:
        >>> from fedbandit_envs.arms.env import ArmsEnv
        >>> env = ConstantReleases(ArmsEnv(num_agents=2, num_arms=2), np.array([7.0, 0.0]))
        >>> _ = env.reset_batch([0])
        >>> env.release(np.array([[True, True]]))["pulls"].tolist()
        [[[7.0, 7.0], [0.0, 0.0]]]
    """

    layer = "data"
    examples = ()

    def __init__(self, env: FederatedEnv, number: float | Array) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without a privatizer.
            number: The number that is released: one for all agents, or one for each of them, ``(agents,)``.
        """
        super().__init__(env)
        self._number = number

    def _release(self, sends: Array) -> Arrays:
        numbers = np.where(sends, self._number, 0.0)
        return {
            name: spread(numbers, array) * np.ones(array.shape)
            for name, array in self.env._release(sends).items()
        }


LARGE = 1e9
"""A number far beyond any reasonable clip."""


def _opposed(make: Callable[..., FederatedEnv], number: float, **settings: Any) -> ConstantReleases:
    return ConstantReleases(make(**settings), number)


class _Samples:
    """Samples of one history's releases: many agents play the same actions, and each agent's releases are one sample.

    Attributes:
        env: The privatized federation in which the agents play.
        clear: One agent's releases without noise, which the attacker knows, ``(releases, values)``.
    """

    def __init__(
        self,
        privatize: Privatize,
        make: Callable[..., FederatedEnv],
        actions: Sequence[Array],
        samples: int,
        seed: Sequence[int],
    ) -> None:
        """Builds the privatized federation, with as many agents as are simulated together.

        Args:
            privatize: A function that wraps a given environment in the privatizer.
            make: A function that returns the environment, given ``num_agents``.
            actions: Every agent's action in each window, elements of the action space.
            samples: The smallest number of samples; there may be some more.
            seed: Seed of the episodes, from which the noise follows.
        """
        self._actions = actions
        self._seed = seed
        # Inside of the privatizer, where releases may be clipped.
        clear = list(self._play(privatize(make(num_agents=1)).env, 0))
        size = sum(array.size for arrays in clear for array in arrays.values())
        self._episodes = ceil(samples / min(_AGENTS, max(_HELD // size, 1)))
        self.env = privatize(make(num_agents=ceil(samples / self._episodes)))
        self.clear = np.concatenate([side_by_side(arrays, self.env.single_release_space) for arrays in clear])

    def _play(self, env: FederatedEnv, seed: int) -> Iterator[Arrays]:
        """Plays an episode of one replica and yields the releases of each window, arrays by name ``(agents, ...)``."""
        env.reset_batch([seed])
        everyone = np.ones((1, env.max_num_agents), np.bool_)
        for action in self._actions:
            env.step_batch(np.broadcast_to(action, (*everyone.shape, *action.shape)))
            yield {name: array[0] for name, array in env.release(everyone).items()}

    def draw(self) -> Iterator[Iterator[Array]]:
        """Yields for each episode an iterator over its windows, of releases ``(agents, values)``."""
        for seed in np.random.SeedSequence(self._seed).generate_state(self._episodes, np.uint64).tolist():
            windows = self._play(self.env, seed)
            yield (side_by_side(arrays, self.env.single_release_space) for arrays in windows)


def side_by_side(arrays: Arrays, layout: spaces.Dict) -> Array:
    """Returns all numbers in a release side by side, ``(rows, values)``, in the order of the names in ``layout``.

    Arrays that are missing are filled with 0.
    """
    rows = len(next(iter(arrays.values())))
    parts = [arrays.get(name, np.zeros((rows, *(space.shape or ())))) for name, space in layout.items()]
    return np.concatenate([part.reshape(rows, -1) for part in parts], axis=1, dtype=np.float64)
