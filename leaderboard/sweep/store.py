"""What an experiment plays: cells, split into shards, each of which is kept in a file of its own.

A shard's file appears at once and whole. So whatever ends a reproduction, started again it plays only what is
missing, and experiments that share a run share its shards.
"""

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from fedbandit_envs.federation import Arrays


class Cell(Protocol):
    """One run of an experiment, or a shard of it."""

    @property
    def key(self) -> list[Any]:
        """All that its results follow from, as JSON can have it, but for the version of the package."""

    @property
    def size(self) -> float:
        """How much there is to play: agent-rounds, or what takes about as long."""

    def split(self) -> Sequence[Self]:
        """Returns its shards."""

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays it, and returns what is to be kept.

        Args:
            advance: Told of how much has been played since its last call.
        """

    def join(self, parts: Sequence[Arrays]) -> Any:
        """Puts a run together from what was kept of its shards, of which this is the first.

        Returns:
            What reports are given; it has ``cpu_seconds``, what playing took.
        """


def path(shard: Cell, folder: Path) -> Path:
    """Returns where a shard's file is, or will be."""
    text = json.dumps([*shard.key, version("fedbandit-envs")], sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"


_played: Any = None


def _share_counter(counter: Any) -> None:
    global _played
    _played = counter


def _advance(played: float) -> None:
    if _played is not None:
        with _played.get_lock():
            _played.value += played


def play_shard(shard: Cell, folder: Path) -> None:
    """Plays a shard and writes its file."""
    # Names are the arrays' own, whatever else the function takes by name.
    kept: dict[str, Any] = dict(shard.play(_advance))
    file = path(shard, folder)
    partial = file.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as out:
        np.savez_compressed(out, **kept)
    partial.replace(file)


def play(missing: Sequence[Cell], folder: Path, workers: int, advance: Callable[[float], None]) -> None:
    """Plays shards in processes of their own.

    Args:
        missing: What to play.
        folder: Where the files go; made if needed.
        workers: Number of processes.
        advance: Told of how much was played since its last call, about twice a second.
    """
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    counter = context.Value("d", 0.0)
    with ProcessPoolExecutor(workers, context, _share_counter, (counter,)) as pool:
        running = {pool.submit(play_shard, shard, folder) for shard in missing}
        told = 0.0
        while running:
            done, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
            advance(counter.value - told)
            told = counter.value
            for future in done:
                future.result()


def missing_shards(wanted: Sequence[Cell], folder: Path) -> list[Cell]:
    """Returns those shards, each once, whose file is not there."""
    distinct = {path(shard, folder): shard for shard in wanted}
    return [shard for file, shard in distinct.items() if not file.exists()]


def load(wanted: Sequence[Cell], folder: Path) -> Any:
    """Puts a run together from its shards' files."""
    parts = []
    for shard in wanted:
        with np.load(path(shard, folder)) as file:
            parts.append({name: file[name] for name in file.files})
    return wanted[0].join(parts)
