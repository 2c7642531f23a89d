"""Runs of a federation as cells of an experiment; their shards have fewer seeds."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from time import process_time
from typing import Any, get_args

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.claim import Composition
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.leaderboard.run import Settings, build, federation
from fedbandit_envs.leaderboard.simulation import simulate
from fedbandit_envs.wrapper import find_layer
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.transport import Transport

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
class Run:
    """One run of an experiment, or a shard of it: the same with fewer seeds.

    Attributes:
        settings: What to play.
        strata: The problem instances; a shard's seeds begin with the first of them.
        delta: At which privacy is claimed (in basic composition it is the promised one).
        rows: About how many rows a shard has: 500 stay in cache; fewer lose less where a shard takes long.
    """

    settings: Settings
    strata: Strata = ONE_STRATUM
    delta: float = 1e-5
    rows: int = _ROWS_A_SHARD

    @cached_property
    def agents(self) -> int:
        """Number of agents in the environment."""
        return federation(self.settings).max_num_agents

    @property
    def size(self) -> float:
        """How many agent-rounds there are to play."""
        return float(self.settings.rounds * self.settings.seeds * self.agents)

    @property
    def key(self) -> list[Any]:
        """All that the results follow from; see :attr:`.cell.Cell.key`."""
        return ["run", asdict(self.settings), self.delta]

    def split(self) -> list["Run"]:
        """Splits the seeds into shards of about :attr:`rows` rows.

        Seeds are split at multiples of the number of strata.
        """
        settings, count = self.settings, self.strata.count
        size = max(1, self.rows // self.agents // count) * count
        last = settings.first_seed + settings.seeds
        return [
            replace(self, settings=replace(settings, first_seed=start, seeds=min(size, last - start)))
            for start in range(settings.first_seed, last, size)
        ]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays all seeds side by side; see :meth:`.cell.Cell.play`."""
        start = process_time()
        settings = self.settings
        env, policy = build(settings)
        rows = settings.seeds * env.max_num_agents
        simulation = simulate(env, policy, settings.all_seeds, lambda rounds: advance(rounds * rows))
        transport = find_layer(env, "transport")
        traffic = transport.traffic if isinstance(transport, Transport) else {}
        return {
            "rounds": simulation.rounds,
            "regret": simulation.regret,
            "claims": np.array(json.dumps(claims_of(env, self.delta))),
            "cpu_seconds": np.array(process_time() - start),
            "groups": np.array(json.dumps({name: list(agents) for name, agents in env.groups.items()})),
            **{f"info/{name}": values for name, values in simulation.info.items()},
            **{f"traffic/{name}": values for name, values in traffic.items()},
            **{f"totals/{name}": values for name, values in simulation.totals.items()},
            **({} if simulation.messages is None else {"messages": simulation.messages}),
        }

    def join(self, parts: Sequence[Arrays]) -> "Result":
        """Puts the run together from its shards; see :meth:`.cell.Cell.join`."""

        def by_seed(group: str) -> Arrays:
            return {
                name.removeprefix(group): np.concatenate([part[name] for part in parts])
                for name in parts[0]
                if name.startswith(group)
            }

        return Result(
            rounds=parts[0]["rounds"],
            regret=np.concatenate([part["regret"] for part in parts], axis=1),
            info=by_seed("info/"),
            traffic=by_seed("traffic/"),
            claims=_worst_claims([json.loads(str(part["claims"])) for part in parts]),
            cpu_seconds=float(sum(part["cpu_seconds"] for part in parts)),
            strata=self.strata,
            messages=np.concatenate([part["messages"] for part in parts], axis=1)
            if "messages" in parts[0]
            else None,
            groups=json.loads(str(parts[0]["groups"])),
            totals=by_seed("totals/"),
        )


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


def claims_of(env: FederatedEnv, delta: float) -> list[dict[str, Any]]:
    """Claims what an episode has spent, by all compositions under all adjacencies; none without a privatizer.

    Args:
        env: The environment, with its wrappers.
        delta: At which; basic composition claims at the delta that was promised.
    """
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
