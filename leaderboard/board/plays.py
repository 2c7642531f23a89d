"""One entry's play of one task, as a cell of a sweep: behind its track's wrappers, with a few rows of it watched."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.leaderboard.board.child import EntryError
from fedbandit_envs.leaderboard.board.entries import Maker, baseline_of, in_all
from fedbandit_envs.leaderboard.board.result import Entry
from fedbandit_envs.leaderboard.board.suites import Task
from fedbandit_envs.leaderboard.board.tracks import Track
from fedbandit_envs.leaderboard.row_check import RowCheck
from fedbandit_envs.leaderboard.simulation import Simulation, play_episodes
from fedbandit_envs.registration import make_federation
from fedbandit_envs.streams import row_seeds
from fedbandit_envs.wrapper import find_layer
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.transport import Transport

_ROWS_A_SHARD = 500


@dataclass(frozen=True)
class Play:
    """An entry's play of a task, or a shard of it: the same with fewer seeds.

    Attributes:
        task: What is played.
        track: What the entry may let out.
        entry: Who plays.
        seeds: Evaluation seeds, one a replica.
        noise: What its noise follows from.
        watch: What the choice of rows that are played alone as well follows from.
        watched: How many of these rows a shard has.
        code: Where a submission's code is, as :class:`.child.ChildPolicy` takes it; empty for a baseline.
    """

    task: Task
    track: Track
    entry: Entry
    seeds: tuple[int, ...]
    noise: int
    watch: int
    watched: int
    code: str = ""

    @property
    def key(self) -> list[Any]:
        """All that the results follow from; see :attr:`~fedbandit_envs.leaderboard.sweep.cell.Cell.key`."""
        # As text: JSON has infinity in tracks, and large integers, in no form of its own.
        return ["play", self.task.digest, repr(self.track), asdict(self.entry), repr(self.seeds), repr(self.noise),
                repr(self.watch), self.watched]  # fmt: skip

    @property
    def size(self) -> float:
        """How many agent-rounds there are to play."""
        return float(self.task.rounds * len(self.seeds) * self.agents)

    @cached_property
    def agents(self) -> int:
        """Number of agents in the environment."""
        return self.federation().max_num_agents

    def federation(self) -> FederatedEnv:
        """Builds the task's environment, without anything around it."""
        return make_federation(self.task.env_id, **{**self.task.env_kwargs, "max_cycles": self.task.rounds})

    def split(self) -> list["Play"]:
        """Splits the seeds into shards of about 500 rows."""
        size = max(1, _ROWS_A_SHARD // self.agents)
        return [
            replace(self, seeds=self.seeds[start : start + size]) for start in range(0, len(self.seeds), size)
        ]

    def stack(self) -> FederatedEnv:
        """Builds the environment behind the track's and the entry's wrappers."""
        baseline = baseline_of(self.entry, self.track)
        changes = {part: said for part, said in self.entry.settings.items() if part in baseline.wrappers}
        return self.track.wrap(self.federation(), baseline, self.noise, changes)

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays all seeds side by side.

        Raises:
            TrackError: What was played does not keep what the track demands.
            MixedRowsError: The policy acts for a row that is watched as it would not for that row alone.
            EntryError: The policy of a submission breaks, or acts as no policy may.
        """
        start = _cpu_seconds()
        env = self.stack()
        rows = len(self.seeds) * env.max_num_agents
        with ExitStack() as open_until_played:
            make = Maker(self.entry, self.code, open_until_played)
            checked = RowCheck(make(), make, self.watched, self.watch)
            simulation = self._simulate(env, checked, lambda rounds: advance(rounds * rows))
        self.track.check(env)
        return {
            "rounds": simulation.rounds,
            # Agents' mean: what is ranked.
            "regret": simulation.regret.mean(axis=2),
            "claims": np.array(json.dumps(_claims(env, self.track))),
            "watched": np.array(checked.rows, np.int64).reshape(-1, 2),
            "confined": np.array(json.dumps(make.confined)),
            "cpu_seconds": np.array(_cpu_seconds() - start),
            **{f"extra/{name}": values for name, values in _extra(simulation).items()},
            **{f"traffic/{name}": values for name, values in _traffic(env, len(self.seeds)).items()},
        }

    def _simulate(self, env: FederatedEnv, policy: RowCheck, advance: Callable[[int], None]) -> Simulation:
        start = env.reset_batch(self.seeds)
        try:
            policy.reset(env.policy_spaces, row_seeds(self.seeds, env.max_num_agents))
            return play_episodes(env, policy, start, advance)
        except EntryError as error:
            # It says the round itself, if it came to one.
            raise EntryError(f"{self.entry.name}, {self.task.id}, {error}") from error
        except (ValueError, TypeError, BudgetExhaustedError) as error:
            if self.entry.kind == "baseline":
                raise
            # A child raises nothing else: it is the environment, or what is around it, that refuses what it did.
            where = f"{self.entry.name}, {self.task.id}, round {policy.round}"
            raise EntryError(f"{where}: {error}") from error

    def join(self, parts: Sequence[Arrays]) -> "Played":
        """Puts a play together from its shards."""
        first = np.cumsum([0, *(part["regret"].shape[1] for part in parts)])

        def by_seed(group: str) -> dict[str, list[float]]:
            return {
                name.removeprefix(group): np.concatenate([part[name] for part in parts]).tolist()
                for name in parts[0]
                if name.startswith(group)
            }

        traffic = by_seed("traffic/")
        return Played(
            rounds=parts[0]["rounds"].tolist(),
            regret=np.concatenate([part["regret"] for part in parts], axis=1).tolist(),
            extra=by_seed("extra/"),
            messages=traffic["messages"],
            bytes=traffic["bytes"],
            claims=worst([json.loads(str(part["claims"])) for part in parts]),
            replayed_rows=[
                [int(replica + offset), int(agent)]
                for offset, part in zip(first, parts, strict=False)
                for replica, agent in part["watched"]
            ],
            confined=None
            if self.entry.kind == "baseline"
            else in_all([json.loads(str(part["confined"])) for part in parts]),
            cpu_seconds=float(sum(part["cpu_seconds"] for part in parts)),
        )


@dataclass(frozen=True)
class Played:
    """What a play has left; see :class:`~fedbandit_envs.leaderboard.board.result.TaskResult` for the attributes."""

    rounds: list[int]
    regret: list[list[float]]
    extra: dict[str, list[float]]
    messages: list[float]
    bytes: list[float]
    claims: list[dict[str, Any]]
    replayed_rows: list[list[int]]
    confined: list[str] | None
    cpu_seconds: float

    @property
    def arrays(self) -> dict[str, Any]:
        """What must be the same whenever it is played again."""
        return {
            name: getattr(self, name) for name in ("rounds", "regret", "extra", "messages", "bytes", "claims")
        }


def _cpu_seconds() -> float:
    """Returns the CPU time of this process and of those of its children that have ended, a submission's among them.

    Others may have ended before in a process that plays many shards: only differences mean anything.
    """
    return sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))


def _claims(env: FederatedEnv, track: Track) -> list[dict[str, Any]]:
    """Claims what an episode has spent, exactly composed, under every adjacency; without noise all are one."""
    noise = find_layer(env, "noise")
    if not isinstance(noise, Privatizer):
        return [track.claim(env).as_json()]
    return [
        noise.accountant.epsilon(track.delta, composition="exact", adjacency=adjacency).as_json()
        for adjacency in env.sensitivity().changes
    ]


def how_bad(claim: Mapping[str, Any]) -> tuple[bool, float]:
    """Orders claims: no answer is worse than infinity, which is worse than any number."""
    epsilon = claim["epsilon"]
    return epsilon is None, float("inf") if epsilon == "infinity" else epsilon or 0.0


def worst(by_shard: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Returns claims that hold for all shards."""
    return [max(claims, key=how_bad) for claims in zip(*by_shard, strict=True)]


def _extra(simulation: Simulation) -> Arrays:
    """Returns what a problem adds up besides regret, ``(seeds,)`` by name.

    Totals of arms are shares, of each agent the arm that ``deserved`` most first, if that is among them.
    """
    found = {
        name: values.mean(axis=1)
        for name, values in simulation.info.items()
        if name not in ("messages", "bytes", "lost", "epsilon_spent")
    }
    if totals := simulation.totals:
        # Agents' arms are their own: the third of one has nothing to do with the third of another.
        order = np.argsort(-totals.get("deserved", next(iter(totals.values()))), axis=-1, kind="stable")
        for name, values in totals.items():
            shares = np.take_along_axis(values / values.sum(axis=-1, keepdims=True), order, -1).mean(axis=1)
            found |= {f"{name}[{k}]": shares[:, k] for k in range(shares.shape[1])}
    return found


def _traffic(env: FederatedEnv, seeds: int) -> dict[str, Array]:
    transport = find_layer(env, "transport")
    if not isinstance(transport, Transport):
        return {"messages": np.zeros(seeds), "bytes": np.zeros(seeds)}
    return {
        name: values.mean(axis=1)
        for name, values in transport.traffic.items()
        if name in ("messages", "bytes")
    }
