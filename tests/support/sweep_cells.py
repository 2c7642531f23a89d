"""Cells to sweep over that take as long as they are told to, and note when they are played."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from time import sleep

import numpy as np

from fedbandit_envs.experiments.store import Store


@dataclass(frozen=True)
class Drawn:
    """Numbers that seeds draw, a shard a seed.

    Attributes:
        seeds: Which.
        numbers: How many of each.
        seconds: How long a shard takes.
        log: A folder, to which each play of a shard adds a line; no part of what results follow from.
        failing: Seeds whose play fails.
        deadly: Seeds whose play ends the process that plays.
    """

    seeds: tuple[int, ...]
    numbers: int = 4
    seconds: float = 0.0
    log: str = ""
    failing: tuple[int, ...] = ()
    deadly: tuple[int, ...] = ()

    @property
    def key(self):
        return ["drawn", self.seeds, self.numbers]

    @property
    def size(self):
        return float(len(self.seeds))

    def split(self):
        return [replace(self, seeds=(seed,)) for seed in self.seeds]

    def play(self):
        (seed,) = self.seeds
        if self.log:
            with (Path(self.log) / f"{seed}").open("a") as log:
                log.write(f"{os.getpid()}\n")
        if seed in self.failing:
            raise ValueError(f"seed {seed} fails")
        if seed in self.deadly:
            os.kill(os.getpid(), 9)
        sleep(self.seconds)
        return {"numbers": np.random.default_rng(seed).random(self.numbers), "cpu_seconds": np.array(0.0)}

    def join(self, parts):
        return np.stack([part["numbers"] for part in parts])

    def expected(self):
        """What an uninterrupted run has, computed here."""
        return np.stack([np.random.default_rng(seed).random(self.numbers) for seed in self.seeds])


def plays(log: Path) -> dict[int, int]:
    """How often each seed's shard has been begun."""
    return {int(file.name): len(file.read_text().splitlines()) for file in log.iterdir()}


def players(log: Path) -> set[int]:
    """Who has begun any: ids of processes."""
    return {int(line) for file in log.iterdir() for line in file.read_text().splitlines()}


def contents(cell, folder):
    """All that a cell's shards keep, but for how long they took."""
    for shard in cell.split():
        with np.load(Store(folder).path(shard)) as kept:
            yield {name: values.tolist() for name, values in kept.items() if name != "cpu_seconds"}
