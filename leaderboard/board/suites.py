"""Suites as data: what is played, for how long, how often. Frozen: a change makes another version.

A task's digest is of all that determines it, defaults of the environment included; tests hold those of every suite.
"""

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any

from fedbandit_envs.claim import Adjacency
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.leaderboard.board.canonical import digest_of
from fedbandit_envs.leaderboard.run import arguments
from fedbandit_envs.leaderboard.simulation import log_spaced
from fedbandit_envs.registration import REGISTRY


@dataclass(frozen=True)
class Task:
    """One environment of a suite.

    Attributes:
        id: Name: the suite, a stroke, and what is particular to it.
        env_id: Id in ``REGISTRY``.
        rounds: Horizon.
        seeds: How many evaluation seeds.
        env_kwargs: Changes to the preset.
    """

    id: str
    env_id: str
    rounds: int
    seeds: int
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that determines the task; data that come with the environment are part of it."""
        entry = REGISTRY[self.env_id]
        environment = resolve(entry.federation)
        said = arguments(environment).items()
        defaults = {name: value for name, value in said if value is not inspect.Parameter.empty}
        room = files(environment.__module__.rpartition(".")[0])
        return digest_of(
            {
                "id": self.id,
                "env_id": self.env_id,
                "federation": entry.federation,
                "arguments": {**defaults, **entry.kwargs, **self.env_kwargs, "max_cycles": self.rounds},
                "stack": [list(layer) for layer in entry.stack],
                "rounds": log_spaced(self.rounds).tolist(),
                "seeds": self.seeds,
                "data": {
                    file.name: hashlib.sha256(file.read_bytes()).hexdigest()
                    for file in room.iterdir()
                    if file.name.endswith(".csv")
                },
            }
        )  # fmt: skip


@dataclass(frozen=True)
class Suite:
    """Tasks that are played and ranked together.

    Attributes:
        name: Name.
        tasks: What is played.
        reference: Baseline that acts at random, whose regret under the same seeds has the score 0.
        adjacency: The neighbouring histories that private tracks protect.
        version: Raised whenever a task changes; results of other versions are other results.
    """

    name: str
    tasks: tuple[Task, ...]
    reference: str
    adjacency: Adjacency
    version: int = 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 of name, version, reference, adjacency and the tasks' digests."""
        tasks = [task.digest for task in self.tasks]
        return digest_of([self.name, self.version, self.reference, self.adjacency, tasks])


def _both(
    name: str,
    reference: str,
    adjacency: Adjacency,
    envs: Mapping[str, tuple[str, Mapping[str, Any]]],
    full: tuple[int, int],
    quick: tuple[int, int],
) -> list[Suite]:
    """Returns a suite and its quick version, of other rounds and seeds."""
    return [
        Suite(
            name + suffix,
            tuple(
                Task(f"{name}{suffix}/{kind}", env_id, *scale, kwargs)
                for kind, (env_id, kwargs) in envs.items()
            ),
            reference,
            adjacency,
        )
        for suffix, scale in (("", full), ("-quick", quick))
    ]


_ALL = [
    *_both(
        "procurement",
        "uniform-random",
        "one-quantity",
        {"uniform": ("FedProcurement-v0", {}), "normal": ("FedProcurementNormal-v0", {})},
        (100_000, 20),
        (2_000, 10),
    ),
    *_both(
        "linear",
        "random-arm",
        "one-observation",
        {"band": ("FedLinear-v0", {}), "ball": ("FedLinearBall-v0", {})},
        (30_000, 20),
        (1_000, 10),
    ),
    *_both(
        "exposure",
        "equal-shares",
        "one-observation",
        {"exponential": ("FedExposure-v0", {}), "noisy": ("FedExposureNoisy-v0", {})},
        (30_000, 20),
        (1_000, 10),
    ),
    *_both(
        "arms",
        "uniform-arms",
        "one-observation",
        {"uniform": ("FedArms-v0", {}), "movielens": ("FedArmsMovieLens-v0", {"num_arms": 10})},
        (100_000, 20),
        (2_000, 10),
    ),
]

SUITES: dict[str, Suite] = {suite.name: suite for suite in _ALL}
"""Every suite by name."""
