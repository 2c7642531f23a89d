"""Audits of stages: attacks by all that one observer of a transport's stage sees of agents' releases.

The attacked federation is a real one: an environment, a privatizer with a clip, and a transport with the stage. Its
first agent releases in one history always the same large positive numbers, and in the other one their negatives, so
that the clip turns them into the worst neighbours under the adjacency ``agent``. Each replica is one sample.

Sums have Gaussian noise and are attacked as releases are (:mod:`fedbandit_envs.wrappers.privacy.attacks`). A shuffled
batch is attacked by two statistics. One is its log-likelihood ratio, if the first agent's message is equally likely to
be any of the batch that the observer does not know. The other one is the message among these that announces the
smallest variance, the first one if all are equal: it is the first agent's if names, order or variances that differ by
agent are left in the batch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any, Literal, cast

import numpy as np
from scipy.special import logsumexp

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.privacy import AGENT, Claim, variance_of
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.wrappers.privacy import attacks
from fedbandit_envs.wrappers.privacy.attacks import Pair
from fedbandit_envs.wrappers.privacy.audit import LARGE, ConstantReleases, Evidence, Privatize
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server
from fedbandit_envs.wrappers.transport.stages import Combined, Stage, StageSpec, make_stage

Observer = Literal["server", "fellow", "public"]
"""Who watches a stage: the server, another agent, or whoever sees what is sent to agents."""

# The largest number of released numbers of replicas that are simulated together (8 MB).
_HELD = 1 << 20
# Thresholds of alarms by a shuffled batch, quantiles of training samples; far out alone there is too little to see.
_THRESHOLDS = (0.5, 0.8, 0.95, 0.99, 0.999)


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
    * under ``server`` the answers of a server that adds up what it reads; fellows and the public see the same;
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
        stage: The stage, see :mod:`fedbandit_envs.wrappers.transport.stages`.
        observer: Who watches.
        agents: Number of agents in a federation.
        releases: Number of releases of each agent, one a round.
        others: What all other agents release in both histories. In the two histories the first agent releases a vector
            of the clip's norm, or its opposite; the others release this multiple of the vector: 0 for zeros, 1 or -1
            for the same as the first agent in one of the histories.
        samples: Number of samples of each history; a quarter as many are drawn before to train the attack.
        error: Largest probability with which the lower bound on epsilon may be too high.
        seed: Seed of the noise.

    Raises:
        ValueError: Stage and observer are not in :data:`ATTACKED`.
    """
    made = make_stage(stage, agents)
    if made is None or (made.trust, observer) not in ATTACKED:
        raise ValueError(
            f"stage is {stage!r} and observer {observer!r}; one of {ATTACKED} is required as stage and observer"
        )
    numbers = np.full((2, agents), others * LARGE)
    numbers[:, 0] = LARGE, -LARGE
    make = partial(cast(Any, problem), num_agents=agents, max_cycles=releases + 1)
    views = [_View(privatize(ConstantReleases(make(), row)), made, observer, releases) for row in numbers]
    clear = np.stack([view.clear() for view in views])
    trained, tested = (
        [view.draw(number, [seed, part, i], clear) for i, view in enumerate(views)]
        for part, number in enumerate((max(samples // 4, 2), samples))
    )
    shuffled = made.trust == "shuffler"
    if shuffled:
        weights, differs = np.array([[1.0, 0.0]]), np.array([[False, True]])
    else:
        weights, differs = attacks.matched_filter(*trained), np.ones((releases, 1), np.bool_)
    seen_trained, seen_tested = (
        cast(Pair, tuple(attacks.observe([windows], weights, differs) for windows in pair))
        for pair in (trained, tested)
    )
    ends = np.zeros(differs.sum()), np.ones(differs.sum())
    quantiles = _THRESHOLDS if shuffled else attacks.FAR_OUT
    kinds = [[*attacks.tail_events(seen_trained, seen_tested, ends, quantiles)]]
    if not shuffled:
        kinds.append([attacks.best_event(True, seen_trained, seen_tested, ends)])
    rates = [rate for alarms in kinds for rate in attacks.bounded_rates(alarms, error / len(kinds))]
    return Evidence(AGENT, views[1].claim, rates)


ATTACKED: tuple[tuple[str, Observer], ...] = (
    ("shuffler", "server"),
    ("shuffler", "fellow"),
    ("aggregator", "server"),
    ("aggregator", "fellow"),
    ("aggregator", "public"),
    ("server", "fellow"),
    ("server", "public"),
)
"""Stages and observers that can be attacked."""


@dataclass(frozen=True)
class _WatchedStage(Stage):
    """A stage that keeps the latest uploads, so that an observer can know some agents' messages.

    Attributes:
        uploads: The uploads of the latest synchronisation by name, ``(replicas, agents, ...)``.
    """

    uploads: Arrays = field(default_factory=dict)

    def combined(self, statistic: Arrays, arrived: Array) -> Combined:
        self.uploads.update(statistic)
        return super().combined(statistic, arrived)


class _View:
    """The numbers that an observer sees while one history of the first agent is played through the real stack."""

    def __init__(self, private: Privatizer, stage: Stage, observer: Observer, releases: int) -> None:
        """Puts a transport around a privatized environment: a channel for secure sums, otherwise a server."""
        self._private, self._observer, self._releases = private, observer, releases
        self._stage = _WatchedStage(stage.trust, stage.honest, stage.colluders)
        # The number of agents, the last ones, whose shares of the noise or messages the observer knows.
        self._known = 0 if observer == "public" else stage.colluders + (observer == "fellow")
        self._read: Arrays = {}

        def add_up(uploads: Arrays, mask: Array) -> Arrays:
            self._read = uploads
            return {name: array.sum(axis=1) for name, array in uploads.items()}

        self._env = (
            Channel(private, stage=self._stage)
            if stage.trust == "aggregator"
            else Server(private, "every_round", policy=add_up, stage=self._stage)
        )

    def claim(self, **asked: Any) -> Claim:
        """Returns the claim for the observer, given delta, composition and adjacency."""
        return [claim for claim in self._private.claims(**asked) if claim.observer == self._observer][-1]

    def clear(self) -> Array:
        """Returns the releases of all agents in a round, clipped and without noise, ``(agents, values)``."""
        inside = self._private.env
        inside.reset_batch([0])
        return self._numbers(inside.release(np.ones((1, inside.max_num_agents), np.bool_)))[0]

    def _numbers(self, arrays: Arrays, of: Callable[[str], str] = str) -> Array:
        """Returns the numbers of released arrays side by side, ``(..., values)``.

        Args:
            arrays: Arrays with two leading axes, in any order.
            of: The function from the name of a released array to its name in ``arrays``.
        """
        parts = [arrays[of(name)] for name in self._private.env.single_release_space]
        return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=-1)

    def draw(self, samples: int, seed: Sequence[int], clear: Array) -> Array:
        """Returns what the observer sees in each of some samples, reduced to a few numbers.

        Args:
            samples: Number of samples.
            seed: Seed of the episodes.
            clear: What all agents release in both histories without noise, ``(2, agents, values)``.

        Returns:
            The sums in the direction in which the histories differ, ``(releases, samples, 1)``; for batches the two
            statistics of this module, added up over releases, ``(1, samples, 2)``.
        """
        seeds = np.random.SeedSequence(seed).generate_state(samples, np.uint64)
        rows = np.array_split(seeds, ceil(samples * clear[0].size / _HELD))
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
                messages, variances = self._numbers(self._read), self._numbers(self._read, variance_of)
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
                yield self._numbers(observation, "server_{}".format)[:, -1:] @ towards
            else:
                inboxes = self._numbers(observation, "inbox_{}".format)
                # Each inbox is the sum without the agent's own share, so that all of them show the sum.
                total = inboxes.sum(axis=1, keepdims=True) / (agents - 1)
                shares = total - inboxes[:, agents - self._known :]
                yield (total[:, 0] - shares.sum(axis=1))[:, np.newaxis] @ towards
