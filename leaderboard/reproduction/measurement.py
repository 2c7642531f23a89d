"""A run of an experiment that calls one function, for measurements that are no run of a baseline."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.leaderboard.runs.source import source_digest


@dataclass(frozen=True)
class Measurement:
    """A function of a paper's module and its arguments, as a :class:`~fedbandit_envs.leaderboard.runs.store.Cell`.

    Attributes:
        measure: The function, called as ``measure(seeds, advance, **arguments)``. It calls ``advance`` with the share
            of its work that was done since the last call, and returns by name arrays whose first axis is that of the
            seeds, and other values that are the same for all seeds and that JSON can express.
        arguments: Its other arguments, as JSON can express them.
        seeds: All seeds.
        per_shard: Number of seeds that a shard has at most.
        work: Agent-rounds per seed, or an amount of work that takes about as long.
        labels: Values by which the measurement differs from other runs of its panel; no part of the key.
    """

    measure: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any]
    seeds: range
    per_shard: int
    work: float
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> list[Any]:
        """Everything that the result follows from; see :attr:`.store.Cell.key`."""
        # The store adds the source that this module may import, to which the function's module does not belong.
        module = self.measure.__module__
        seeds = [self.seeds.start, self.seeds.stop]
        return [module, self.measure.__name__, dict(self.arguments), seeds, source_digest(module)]

    @property
    def size(self) -> float:
        """Agent-rounds of all seeds."""
        return float(self.work * len(self.seeds))

    def split(self) -> list["Measurement"]:
        """Splits the seeds into shards."""
        starts = range(0, len(self.seeds), self.per_shard)
        return [replace(self, seeds=self.seeds[start : start + self.per_shard]) for start in starts]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Calls the function and returns what a shard's file keeps; see :meth:`.store.Cell.play`."""
        start = process_time()
        found = self.measure(self.seeds, lambda share: advance(share * self.size), **self.arguments)
        arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
        others = {name: value for name, value in found.items() if name not in arrays}
        written = np.array(json.dumps(others))
        return {**arrays, "others": written, "cpu_seconds": np.array(process_time() - start)}

    def join(self, parts: Sequence[Arrays]) -> SimpleNamespace:
        """Returns what the function has returned, as attributes, and ``cpu_seconds``; arrays are those of all seeds."""
        names = parts[0].keys() - {"others", "cpu_seconds"}
        return SimpleNamespace(
            **{name: np.concatenate([part[name] for part in parts]) for name in names},
            **json.loads(str(parts[0]["others"])),
            cpu_seconds=float(sum(part["cpu_seconds"] for part in parts)),
        )
