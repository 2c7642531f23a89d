"""Measurements by a function of a paper's module, for experiments that a run of a baseline cannot express."""

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
    """A call of a measuring function, which can be played in shards and stored like a run of a baseline.

    It is a :class:`~fedbandit_envs.leaderboard.runs.store.Cell`.

    Attributes:
        measure: The function, called as ``measure(seeds, advance, **arguments)``. It calls ``advance`` with the share
            of its work that was done since the last call. It returns, by name, arrays whose first axis has the length
            of ``seeds``, and JSON values that are the same for all seeds.
        arguments: Further arguments of the function, JSON values.
        seeds: Seeds of all shards together.
        per_shard: Largest number of seeds in one shard.
        work: Work for each seed, in agent-rounds (rounds of one agent) or what takes about as long.
        labels: Values by which the measurement differs from other runs of its panel; not a part of the key.
    """

    measure: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any]
    seeds: range
    per_shard: int
    work: float
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> list[Any]:
        """Everything on which the result depends, as JSON values, so that shards with the same key can be reused."""
        # The store itself adds a digest of the package's source without the papers' modules. So the digest of the
        # function's module is added here.
        module = self.measure.__module__
        seeds = [self.seeds.start, self.seeds.stop]
        return [module, self.measure.__name__, dict(self.arguments), seeds, source_digest(module)]

    @property
    def size(self) -> float:
        """Work of all seeds, in agent-rounds or what takes about as long."""
        return float(self.work * len(self.seeds))

    def split(self) -> list["Measurement"]:
        """Returns the measurement split into shards with at most ``per_shard`` seeds each."""
        starts = range(0, len(self.seeds), self.per_shard)
        return [replace(self, seeds=self.seeds[start : start + self.per_shard]) for start in starts]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Calls the function and returns the arrays that are written to the shard's file.

        Args:
            advance: Called with the amount of work, in units of ``size``, that was done since its last call.

        Returns:
            The function's arrays by name, ``others`` (its other values as JSON text) and ``cpu_seconds``.
        """
        start = process_time()
        found = self.measure(self.seeds, lambda share: advance(share * self.size), **self.arguments)
        arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
        others = {name: value for name, value in found.items() if name not in arrays}
        written = np.array(json.dumps(others))
        return {**arrays, "others": written, "cpu_seconds": np.array(process_time() - start)}

    def join(self, parts: Sequence[Arrays]) -> SimpleNamespace:
        """Returns the result of the whole measurement, put together from its shards.

        Args:
            parts: Contents of the shards' files, in the order of seeds.

        Returns:
            An object whose attributes are the function's values by name, with arrays for all seeds, and
            ``cpu_seconds``, the sum over shards.
        """
        names = parts[0].keys() - {"others", "cpu_seconds"}
        return SimpleNamespace(
            **{name: np.concatenate([part[name] for part in parts]) for name in names},
            **json.loads(str(parts[0]["others"])),
            cpu_seconds=float(sum(part["cpu_seconds"] for part in parts)),
        )
