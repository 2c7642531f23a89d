"""The attack on a leaderboard row's privatizer, which tests the privacy guarantee that is claimed for it.

It is stored like a run (:class:`~fedbandit_envs.experiments.store.Cell`), and rows with the same privatizer share
one.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any, Self

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.core.privacy import Adjacency
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.experiments.store import is_foreign, package_digest
from fedbandit_envs.leaderboard.plays import EntryRun
from fedbandit_envs.leaderboard.tracks import privatizer_of
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.audit import attack
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.schedule import make_schedule

# Largest number of releases that an attack observes. The first releases of a mechanism reveal most: with more of them
# the attack is slower and its lower bound on epsilon no larger.
_MOST_RELEASES = 4
_SAMPLES = 20_000


@dataclass(frozen=True)
class PrivatizerAttack:
    """An attack on a run's privatizer: it estimates a lower bound on epsilon, to compare with the claimed epsilon.

    Attributes:
        make: Function that wraps an environment in the privatizer, with the run's arguments except its noise seed.
        problem: Class of the environment.
        adjacency: Kind of the two neighbouring histories between which the attacker must decide.
        delta: The delta of the privacy claim that is tested.
        releases: Number of releases that the attacker observes.
        horizon: Number of rounds of the task.
    """

    make: partial[Privatizer]
    problem: type[Problem]
    adjacency: Adjacency
    delta: float
    releases: int
    horizon: int

    @classmethod
    def on(cls, play: EntryRun) -> Self | None:
        """Returns the attack on the privatizer of a run; None if it has no privatizer or its track is not private."""
        part = privatizer_of(play.baseline)
        if part is None or not play.track.private:
            return None
        env = play.task.federation()
        changes = play.track.changes(env, play.baseline, play.entry.settings)
        arguments = play.baseline.wrapper_arguments(env, changes)[part]
        planned = arguments.get("releases") or play.task.rounds
        if not isinstance(planned, int):
            planned = make_schedule(planned).count(play.task.rounds)
        return cls(
            make=partial(play.baseline.wrappers[part].make, **arguments),
            problem=type(env.unwrapped),
            adjacency=play.track.adjacency,
            delta=play.track.delta,
            releases=max(1, min(_MOST_RELEASES, planned)),
            horizon=play.task.rounds,
        )

    @property
    def key(self) -> list[Any]:
        """All settings that determine the attack's outcome, as a list that JSON can represent.

        The name of its file is a digest of it; see :attr:`~fedbandit_envs.experiments.store.Cell.key`.
        """
        module = self.problem.__module__
        return ["attack", repr(self), _SAMPLES, *([package_digest(module)] if is_foreign(module) else [])]

    @property
    def size(self) -> float:
        """Amount of work for progress bars: the number of agent-rounds that would take about as long as the attack."""
        return 2.5 * _SAMPLES * self.releases

    def split(self) -> list[Self]:
        """Returns the attack itself, its only shard."""
        return [self]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Attacks the privatizer, and returns the outcome and the CPU time as arrays.

        Seeds are fixed, so that the same attack always has the same outcome.

        Args:
            advance: Called with :attr:`size` when the attack is over, for progress bars.
        """
        start = process_time()
        found = attack(
            self.make,
            self.problem,
            self.adjacency,
            releases=self.releases,
            # A privatizer for continual release protects one observation in one window between releases, so only one
            # window may differ. The others have independent noise in each release, and all of their windows differ.
            altered=1 if self.make.func is ContinualPrivatizer else None,
            samples=_SAMPLES,
            horizon=self.horizon,
        ).against(self.delta, "exact")
        advance(self.size)
        outcome = {
            "lower_bound": found.lower_bound if np.isfinite(found.lower_bound) else "infinity",
            "claim": found.claim.as_json(),
            "holds": found.holds,
            "releases": self.releases,
            "samples": _SAMPLES,
        }
        return {"outcome": np.array(json.dumps(outcome)), "cpu_seconds": np.array(process_time() - start)}

    def join(self, parts: Sequence[Arrays]) -> dict[str, Any]:
        """Returns the attack's outcome as a dictionary, the form that it has as a result's ``audit``.

        Args:
            parts: The arrays that :meth:`play` returned, in a list of length 1.
        """
        return dict(json.loads(str(parts[0]["outcome"])))
