"""Attacks on the privatizers that rows run behind, as cells of a sweep: rows behind the same privatizer share one."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import process_time
from typing import Any, Self

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.leaderboard.board.plays import EntryRun
from fedbandit_envs.leaderboard.board.tracks import privatizer_of
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.audit import attack
from fedbandit_envs.wrappers.transport.schedule import make_schedule

# The first releases of a mechanism reveal most: more windows make the attack slower and its bound no larger.
_MOST_RELEASES = 4
_SAMPLES = 20_000


@dataclass(frozen=True)
class PrivatizerAttack:
    """An attack on a privatizer, with the arguments that it has in a play.

    Attributes:
        mechanism: Entry point of the privatizer.
        arguments: Its arguments, without the noise's entropy.
        problem: Entry point of the problem.
        adjacency: Adjacency of the histories that the attack tells apart.
        delta: Delta at which the privatizer's claim is attacked.
        releases: Number of releases that the attacker sees.
        horizon: Horizon of the task.
    """

    mechanism: str
    arguments: Mapping[str, Any] = field(hash=False)
    problem: str
    adjacency: Adjacency
    delta: float
    releases: int
    horizon: int

    @classmethod
    def on(cls, play: EntryRun) -> Self | None:
        """Returns the attack on the privatizer that a play runs behind; None where there is none, or no claim is made."""
        part = privatizer_of(play.baseline)
        if part is None or not play.track.private:
            return None
        env = play.task.federation()
        changes = play.track.changes(env, play.baseline, play.entry.settings)
        arguments = play.baseline.wrapper_arguments(env, changes)[part]
        make = play.baseline.wrappers[part].make
        planned = arguments.get("releases")
        if planned is None:
            planned = play.task.rounds
        elif not isinstance(planned, int):
            planned = make_schedule(planned).count(play.task.rounds)
        return cls(
            mechanism=f"{make.__module__}:{make.__qualname__}",
            arguments=arguments,
            problem=REGISTRY[play.task.env_id].federation,
            adjacency=play.track.adjacency,
            delta=play.track.delta,
            releases=max(1, min(_MOST_RELEASES, planned)),
            horizon=play.task.rounds,
        )

    @property
    def key(self) -> list[Any]:
        """All that its outcome follows from; see :attr:`~fedbandit_envs.leaderboard.runs.store.Cell.key`."""
        return ["attack", repr(self), _SAMPLES]

    @property
    def size(self) -> float:
        """The number of agent-rounds that take about as long."""
        return 2.5 * _SAMPLES * self.releases

    def split(self) -> list[Self]:
        """Returns the attack itself, its only shard."""
        return [self]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Attacks the privatizer, with noise that follows from the attack alone."""
        start = process_time()
        mechanism = resolve(self.mechanism)
        found = attack(
            partial(mechanism, **self.arguments),
            resolve(self.problem),
            self.adjacency,
            releases=self.releases,
            # Under continual release neighbours differ in one window; independent releases are all altered.
            altered=1 if issubclass(mechanism, ContinualPrivatizer) else None,
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
        """Returns the outcome, in the form of a result's ``audit``."""
        return dict(json.loads(str(parts[0]["outcome"])))
