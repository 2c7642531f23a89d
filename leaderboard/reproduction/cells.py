"""Cells of an experiment: runs split into shards of seeds, each kept in a file of its own.

A shard's file appears at once and whole. So whatever ends a reproduction, started again it plays only what is
missing, and experiments that share a run share its shards.
"""

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any, get_args

import numpy as np

from fedbandit_envs.claim import Adjacency, Composition
from fedbandit_envs.federation import Array, FederatedEnv
from fedbandit_envs.leaderboard.run import Settings, build
from fedbandit_envs.leaderboard.simulation import simulate
from fedbandit_envs.wrappers.privatizers.privatizer import Privatizer

_ROWS_A_SHARD = 500
_CLAIM_DELTA = 1e-5


@dataclass(frozen=True)
class Result:
    """A run, put together from its shards.

    Attributes:
        rounds: Log-spaced rounds, ``(checkpoints,)``.
        regret: Cumulative regret, ``(checkpoints, seeds, agents)``.
        violations: Share of rounds that violated the quality constraint, ``(seeds, agents)``.
        claims: Rows of ``composition``, ``adjacency``, ``epsilon``, ``delta``, ``reason``; none without a privatizer.
        cpu_seconds: What the shards took when they were played.
    """

    rounds: Array
    regret: Array
    violations: Array
    claims: list[dict[str, Any]]
    cpu_seconds: float


def shards(settings: Settings, agents: int, strata: int) -> list[Settings]:
    """Splits a run's seeds into shards of about five hundred rows, whose state stays in cache.

    Args:
        settings: The run.
        agents: Number of agents in it.
        strata: Seeds are split at multiples of this.
    """
    size = max(1, _ROWS_A_SHARD // agents // strata) * strata
    last = settings.first_seed + settings.seeds
    starts = range(settings.first_seed, last, size)
    return [replace(settings, first_seed=start, seeds=min(size, last - start)) for start in starts]


def _path(shard: Settings, folder: Path) -> Path:
    text = json.dumps([asdict(shard), version("fedbandit-envs")], sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"


def _claims(env: FederatedEnv) -> list[dict[str, Any]]:
    """Claims what an episode has spent, by every composition; the promised delta for basic, 1e-5 for the others."""
    while not isinstance(env, Privatizer):
        if not hasattr(env, "env"):
            return []
        env = env.env
    adjacencies: tuple[Adjacency, ...] = ("one-quantity", "one-round")
    return [
        asdict(
            env.accountant.epsilon(
                None if composition == "basic" else _CLAIM_DELTA,
                composition=composition,
                adjacency=adjacency,
            )
        )
        for adjacency in adjacencies
        for composition in get_args(Composition)
    ]


_played: Any = None


def _share_counter(counter: Any) -> None:
    global _played
    _played = counter


def _advance(rows: int) -> Callable[[int], None]:
    def advance(rounds: int) -> None:
        if _played is not None:
            with _played.get_lock():
                _played.value += rounds * rows

    return advance


def play_shard(shard: Settings, folder: Path) -> None:
    """Plays a shard and writes its file."""
    start = process_time()
    env, policy = build(shard)
    seeds = range(shard.first_seed, shard.first_seed + shard.seeds)
    simulation = simulate(env, policy, seeds, _advance(shard.seeds * env.max_num_agents))
    path = _path(shard, folder)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.savez_compressed(
            file,
            rounds=simulation.rounds,
            regret=simulation.regret,
            violations=simulation.info["violation"],
            claims=json.dumps(_claims(env)),
            cpu_seconds=process_time() - start,
        )
    partial.replace(path)


def play(missing: Sequence[Settings], folder: Path, workers: int, advance: Callable[[float], None]) -> None:
    """Plays shards in processes of their own.

    Args:
        missing: What to play.
        folder: Where the files go; made if needed.
        workers: Number of processes.
        advance: Told of agent-rounds played since its last call, about twice a second.
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


def missing_shards(wanted: Sequence[Settings], folder: Path) -> list[Settings]:
    """Returns those shards, each once, whose file is not there."""
    distinct = {_path(shard, folder): shard for shard in wanted}
    return [shard for path, shard in distinct.items() if not path.exists()]


def load(wanted: Sequence[Settings], folder: Path) -> Result:
    """Puts a run together from its shards' files."""
    parts = []
    for shard in wanted:
        with np.load(_path(shard, folder)) as file:
            parts.append({name: file[name] for name in file.files})
    return Result(
        parts[0]["rounds"],
        np.concatenate([part["regret"] for part in parts], axis=1),
        np.concatenate([part["violations"] for part in parts], axis=0),
        json.loads(str(parts[0]["claims"])),
        float(sum(part["cpu_seconds"] for part in parts)),
    )
