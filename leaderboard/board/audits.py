"""Attacks on the privatizers that rows ran behind, as cells of a sweep: rows behind the same one share its attack."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Arrays
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.leaderboard.board.entries import baseline_of
from fedbandit_envs.leaderboard.board.plays import Play
from fedbandit_envs.leaderboard.board.tracks import privatizers
from fedbandit_envs.registration import REGISTRY
from fedbandit_envs.wrappers.privacy.audit import attack
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.transport.schedule import make_schedule

# More windows make the attack dearer and show no more of mechanisms whose first releases betray most.
_MOST_RELEASES = 4
_SAMPLES = 20_000


@dataclass(frozen=True)
class Attack:
    """An attack on a privatizer, with the arguments of a play.

    Attributes:
        mechanism: Entry point of the privatizer.
        arguments: Its arguments, but for the noise's entropy.
        problem: Entry point of the problem.
        adjacency: What the histories differ in.
        delta: At which its claim is attacked.
        releases: How many windows the attacker sees.
        horizon: The task's.
    """

    mechanism: str
    arguments: Mapping[str, Any] = field(hash=False)
    problem: str
    adjacency: Adjacency
    delta: float
    releases: int
    horizon: int

    @property
    def key(self) -> list[Any]:
        """All that its outcome follows from; see :attr:`~fedbandit_envs.leaderboard.sweep.cell.Cell.key`."""
        return ["attack", self.mechanism, repr(self.arguments), self.problem, self.adjacency, self.delta,
                self.releases, self.horizon, _SAMPLES]  # fmt: skip

    @property
    def size(self) -> float:
        """About as many agent-rounds as take as long."""
        return 2.5 * _SAMPLES * self.releases

    def split(self) -> list["Attack"]:
        """Returns the attack itself."""
        return [self]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Attacks, with noise that follows from the attack alone."""
        start = process_time()
        mechanism = resolve(self.mechanism)
        evidence = attack(
            partial(mechanism, **self.arguments),
            resolve(self.problem),
            self.adjacency,
            releases=self.releases,
            # A history of continual release differs in one window; of independent releases each is attacked.
            altered=1 if issubclass(mechanism, ContinualPrivatizer) else None,
            samples=_SAMPLES,
            horizon=self.horizon,
        )
        found = evidence.against(self.delta, "exact")
        advance(self.size)
        said = {
            "lower_bound": found.lower_bound if np.isfinite(found.lower_bound) else "infinity",
            "claim": found.claim.as_json(),
            "holds": found.holds,
            "releases": self.releases,
            "samples": _SAMPLES,
        }
        return {"said": np.array(json.dumps(said)), "cpu_seconds": np.array(process_time() - start)}

    def join(self, parts: Sequence[Arrays]) -> dict[str, Any]:
        """Returns what it has shown, as results have it."""
        return dict(json.loads(str(parts[0]["said"])))


def attack_on(play: Play) -> Attack | None:
    """Returns the attack on the privatizer that a play runs behind; None where there is none, or nothing is claimed."""
    if not play.track.private:
        return None
    baseline = baseline_of(play.entry, play.track)
    asked_for = {part: said for part, said in play.entry.settings.items() if part in baseline.wrappers}
    env = play.federation()
    arguments = baseline.wrapper_arguments(env, play.track.changes(env, baseline, asked_for))
    for part, wrapping in privatizers(baseline).items():
        planned = _planned(arguments[part].get("releases"), play.task.rounds)
        return Attack(
            mechanism=f"{wrapping.make.__module__}:{wrapping.make.__qualname__}",
            arguments=arguments[part],
            problem=REGISTRY[play.task.env_id].federation,
            adjacency=play.track.adjacency,
            delta=play.track.delta,
            releases=max(1, min(_MOST_RELEASES, planned)),
            horizon=play.task.rounds,
        )
    return None


def _planned(releases: Any, horizon: int) -> int:
    """Returns how many releases a privatizer is made for."""
    if releases is None or isinstance(releases, int):
        return horizon if releases is None else releases
    count: Callable[[int], int] = make_schedule(releases).count
    return count(horizon)
