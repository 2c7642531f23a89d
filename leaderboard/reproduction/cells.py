"""Cells of an experiment: runs split into shards of seeds, each kept in a file of its own.

A shard's file appears at once and whole. So whatever ends a reproduction, started again it plays only what is
missing, and experiments that share a run share its shards.
"""

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any, get_args

import numpy as np

from fedbandit_envs.claim import Composition
from fedbandit_envs.federation import Array, Arrays, FederatedEnv
from fedbandit_envs.leaderboard.run import Settings, build, federation
from fedbandit_envs.leaderboard.simulation import simulate
from fedbandit_envs.wrapper import find_layer
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.transport import Transport

_FORMAT = 3
"""Raised whenever files of the same settings would come to say something else, so that older ones are not read."""

_ROWS_A_SHARD = 500


@dataclass(frozen=True)
class Strata:
    """Problem instances that seeds take in turn.

    Attributes:
        count: How many there are; 1 also where each seed draws an instance of its own.
        name: What they are called, in the plural.
    """

    count: int = 1
    name: str = "instances"


ONE_STRATUM = Strata()


@dataclass(frozen=True)
class Cell:
    """One run of an experiment, or a shard of it: the same with fewer seeds.

    Attributes:
        settings: What to play.
        strata: The problem instances; a shard's seeds begin with the first of them.
        delta: At which privacy is claimed (in basic composition it is the promised one).
    """

    settings: Settings
    strata: Strata = ONE_STRATUM
    delta: float = 1e-5

    @cached_property
    def agents(self) -> int:
        """Number of agents in the environment."""
        return federation(self.settings).max_num_agents

    @property
    def agent_rounds(self) -> int:
        """How much there is to play."""
        return self.settings.rounds * self.settings.seeds * self.agents


@dataclass(frozen=True)
class Result:
    """A run, put together from its shards.

    Attributes:
        rounds: Log-spaced rounds, ``(checkpoints,)``.
        regret: Cumulative regret, ``(checkpoints, seeds, agents)``.
        info: Means over rounds of the environment's other information, by name, ``(seeds, agents)``.
        traffic: Total ``messages`` and ``bytes`` of the episode, ``(seeds, agents)``; empty without a transport.
        claims: Rows of ``composition``, ``adjacency``, ``epsilon``, ``delta``, ``reason``, for the agent of all seeds
            that has spent most; none without a privatizer.
        cpu_seconds: What the shards took when they were played.
        strata: The problem instances that seeds take in turn.
        messages: Cumulative messages, as regret; None without a transport.
        groups: Agents to be told apart, by the group's name.
        totals: What episodes added up to besides, by name, ``(seeds, agents, ...)``.
    """

    rounds: Array
    regret: Array
    info: Arrays
    traffic: Arrays
    claims: list[dict[str, Any]]
    cpu_seconds: float
    strata: Strata = ONE_STRATUM
    messages: Array | None = None
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    totals: Arrays = field(default_factory=dict)

    def of(self, group: str) -> "Result":
        """Returns the same of one group of agents alone; claims stay those of all.

        Args:
            group: One of :attr:`groups`.
        """
        agents = list(self.groups[group])
        return replace(
            self,
            regret=self.regret[:, :, agents],
            info={name: values[:, agents] for name, values in self.info.items()},
            traffic={name: values[:, agents] for name, values in self.traffic.items()},
            messages=None if self.messages is None else self.messages[:, :, agents],
            totals={name: values[:, agents] for name, values in self.totals.items()},
            groups={},
        )


def shards(cell: Cell) -> list[Cell]:
    """Splits a run's seeds into shards of about five hundred rows, whose state stays in cache.

    Seeds are split at multiples of the number of strata.
    """
    settings, count = cell.settings, cell.strata.count
    size = max(1, _ROWS_A_SHARD // cell.agents // count) * count
    last = settings.first_seed + settings.seeds
    return [
        replace(cell, settings=replace(settings, first_seed=start, seeds=min(size, last - start)))
        for start in range(settings.first_seed, last, size)
    ]


def _path(shard: Cell, folder: Path) -> Path:
    settings = asdict(shard.settings)
    if not shard.settings.stack:
        # As it was before runs could have a stack, so that their shards are found.
        del settings["stack"]
    content = [_FORMAT, settings, shard.delta, version("fedbandit-envs")]
    text = json.dumps(content, sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"


def _claims(env: FederatedEnv, delta: float) -> list[dict[str, Any]]:
    """Claims what an episode has spent, at ``delta``; by basic composition, at the delta that was promised."""
    privatizer = find_layer(env, "noise")
    if not isinstance(privatizer, Privatizer):
        return []
    accountant = privatizer.accountant
    return [
        asdict(
            accountant.epsilon(
                None if composition == "basic" else delta, composition=composition, adjacency=adjacency
            )
        )
        for adjacency in env.sensitivity().changes
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


def play_shard(shard: Cell, folder: Path) -> None:
    """Plays a shard and writes its file."""
    start = process_time()
    settings = shard.settings
    env, policy = build(settings)
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    simulation = simulate(env, policy, seeds, _advance(settings.seeds * env.max_num_agents))
    transport = find_layer(env, "transport")
    traffic = transport.traffic if isinstance(transport, Transport) else {}
    by_seed: dict[str, Any] = {
        **{f"info/{name}": values for name, values in simulation.info.items()},
        **{f"traffic/{name}": values for name, values in traffic.items()},
        **{f"totals/{name}": values for name, values in simulation.totals.items()},
        **({} if simulation.messages is None else {"messages": simulation.messages}),
    }
    path = _path(shard, folder)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.savez_compressed(
            file,
            rounds=simulation.rounds,
            regret=simulation.regret,
            claims=json.dumps(_claims(env, shard.delta)),
            cpu_seconds=process_time() - start,
            groups=json.dumps({name: list(agents) for name, agents in env.groups.items()}),
            **by_seed,
        )
    partial.replace(path)


def play(missing: Sequence[Cell], folder: Path, workers: int, advance: Callable[[float], None]) -> None:
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


def missing_shards(wanted: Sequence[Cell], folder: Path) -> list[Cell]:
    """Returns those shards, each once, whose file is not there."""
    distinct = {_path(shard, folder): shard for shard in wanted}
    return [shard for path, shard in distinct.items() if not path.exists()]


def load(wanted: Sequence[Cell], folder: Path) -> Result:
    """Puts a run together from its shards' files."""
    parts = []
    for shard in wanted:
        with np.load(_path(shard, folder)) as file:
            parts.append({name: file[name] for name in file.files})

    def by_seed(group: str) -> Arrays:
        return {
            name.removeprefix(group): np.concatenate([part[name] for part in parts])
            for name in parts[0]
            if name.startswith(group)
        }

    return Result(
        parts[0]["rounds"],
        np.concatenate([part["regret"] for part in parts], axis=1),
        by_seed("info/"),
        by_seed("traffic/"),
        _worst_claims([json.loads(str(part["claims"])) for part in parts]),
        float(sum(part["cpu_seconds"] for part in parts)),
        wanted[0].strata,
        np.concatenate([part["messages"] for part in parts], axis=1) if "messages" in parts[0] else None,
        # Shards from before there were groups have none.
        json.loads(str(parts[0].get("groups", "{}"))),
        by_seed("totals/"),
    )


def _worst_claims(by_shard: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Returns claims that hold for the agents of all shards."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for claim in (claim for claims in by_shard for claim in claims):
        grouped.setdefault((claim["adjacency"], claim["composition"]), []).append(claim)
    return [
        # No answer is worse than infinity. A guarantee at a smaller delta is one at a larger.
        {
            **max(claims, key=lambda claim: (claim["epsilon"] is None, claim["epsilon"] or 0.0)),
            "delta": max(claim["delta"] for claim in claims),
        }
        for claims in grouped.values()
    ]
