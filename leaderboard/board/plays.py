"""What is played for a row: the run of an entry in one task, with a few rows checked, and an attack on its privatizer.

Both are cells of a sweep; rows behind the same privatizer share one attack.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from time import process_time
from typing import Any, Self

import numpy as np

from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.leaderboard.board.result import Entry, TaskResult
from fedbandit_envs.leaderboard.board.suites import Task
from fedbandit_envs.leaderboard.board.tracks import Track, privatizer_of
from fedbandit_envs.leaderboard.runs.result import RunResult, claims_of, cpu_seconds
from fedbandit_envs.leaderboard.runs.row_check import RowCheck
from fedbandit_envs.leaderboard.runs.simulate import simulate
from fedbandit_envs.leaderboard.runs.spec import split_seeds
from fedbandit_envs.leaderboard.sandbox import EntryError, SandboxedPolicy
from fedbandit_envs.leaderboard.sandbox.confinement import PARTS
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.audit import attack
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError
from fedbandit_envs.wrappers.transport.schedule import make_schedule

# Information of transports and privatizers, which a result has elsewhere.
_NOT_EXTRA = ("messages", "bytes", "lost", "epsilon_spent")
# The first releases of a mechanism reveal most: more windows make the attack slower and its bound no larger.
_MOST_RELEASES = 4
_SAMPLES = 20_000


@dataclass(frozen=True)
class EntryRun:
    """The run of an entry in a task, or a shard of it: the same with fewer seeds.

    Attributes:
        task: The task.
        track: The track, whose wrappers stand around the entry.
        entry: The entry.
        seeds: Evaluation seeds, one a replica.
        noise_entropy: Entropy that the privatizer's noise follows from.
        row_check_seed: Seed of the choice of rows that are played alone as well.
        checked_rows: Number of these rows in each shard.
        code: Where a submission's code is, as :class:`~fedbandit_envs.leaderboard.sandbox.SandboxedPolicy` takes it;
            empty for a baseline.
    """

    task: Task
    track: Track
    entry: Entry
    seeds: Sequence[int]
    noise_entropy: int
    row_check_seed: int
    checked_rows: int
    code: str = ""

    @property
    def key(self) -> list[Any]:
        """Everything that the numbers follow from; see :attr:`~fedbandit_envs.leaderboard.runs.store.Cell.key`."""
        # As text, since tracks hold infinity and seeds are large integers, which JSON cannot represent exactly.
        return ["entry", self.task.digest, repr(self.track), asdict(self.entry),
                *map(repr, (self.seeds, self.noise_entropy, self.row_check_seed)), self.checked_rows]  # fmt: skip

    @cached_property
    def agents(self) -> int:
        """Number of agents in the environment."""
        return self.task.federation().max_num_agents

    @property
    def size(self) -> float:
        """Number of agent-rounds to play."""
        return float(self.task.rounds * len(self.seeds) * self.agents)

    def split(self) -> list["EntryRun"]:
        """Splits the seeds into shards of about 500 rows."""
        return [replace(self, seeds=seeds) for seeds in split_seeds(self.seeds, self.agents)]

    @cached_property
    def baseline(self) -> Baseline:
        """The baseline whose wrappers the entry runs behind; of a submission it has the wrappers alone."""
        if self.entry.kind == "baseline":
            return BASELINES[self.entry.source]
        wrappers = self.track.submitted(self.entry.settings)
        return Baseline("submitted", "-", FederatedEnv, SandboxedPolicy, {}, wrappers)

    @property
    def is_noisy(self) -> bool:
        """Whether one of its wrappers adds noise."""
        return find_layer(self.stack(), "noise") is not None

    def stack(self) -> FederatedEnv:
        """Makes the environment behind the track's and the entry's wrappers."""
        env = self.task.federation()
        return self.track.wrap(env, self.baseline, self.noise_entropy, self.entry.settings)

    def play(self, advance: Callable[[float], None] = lambda played: None) -> Arrays:
        """Plays all seeds side by side; see :meth:`~fedbandit_envs.leaderboard.runs.store.Cell.play`.

        Policies of a submission live in processes of their own until the run is over.

        Raises:
            TrackError: The episode does not keep what the track demands.
            MixedRowsError: The policy acts for a checked row as it would not for that row alone.
            EntryError: The policy of a submission breaks, or acts as no policy may.
        """
        start, env = cpu_seconds(), self.stack()
        sandboxed: list[SandboxedPolicy] = []
        with ExitStack() as until_played:

            def make_policy() -> Policy:
                if self.entry.kind == "baseline":
                    return self.baseline.make_policy()
                policy = SandboxedPolicy(self.code, settings=dict(self.entry.settings.get("policy", {})))
                sandboxed.append(until_played.enter_context(policy))
                return policy

            policy = RowCheck(make_policy(), make_policy, self.checked_rows, self.row_check_seed)
            try:
                result = simulate(env, policy, self.seeds, advance)
            except EntryError as error:
                # It names the round itself, if it came to one.
                raise EntryError(f"{self.entry.name}, {self.task.id}, {error}") from error
            except (ValueError, TypeError, BudgetExhaustedError) as error:
                if self.entry.kind == "baseline":
                    raise
                # A submission's process raises only EntryError: the environment or a wrapper refuses what it did.
                where = f"{self.entry.name}, {self.task.id}, round {policy.round}"
                raise EntryError(f"{where}: {error}") from error
        self.track.check(env)
        result = replace(
            result,
            claims=claims_of(env, self.track.delta, "exact"),
            checked_rows=policy.rows,
            cpu_seconds=cpu_seconds() - start,
        )
        confined = in_all([policy.confined for policy in sandboxed]) if sandboxed else None
        return {**result.as_arrays(), "confined": np.array(json.dumps(confined))}

    def join(self, parts: Sequence[Arrays]) -> TaskResult:
        """Puts the task's part of a result file together from its shards; it has no audit yet."""
        result = RunResult.joined(parts)
        nothing = np.zeros((len(self.seeds), 1))
        messages, sent_bytes = (
            result.traffic.get(name, nothing).mean(axis=1).tolist() for name in ("messages", "bytes")
        )
        confined = [json.loads(str(part["confined"])) for part in parts]
        task = TaskResult(
            task=self.task.id,
            digest=self.task.digest,
            rounds=result.rounds.tolist(),
            # The mean over agents is what is ranked.
            regret=result.regret.mean(axis=2).tolist(),
            extra={name: values.tolist() for name, values in extra_of(result).items()},
            messages=messages,
            bytes=sent_bytes,
            claims=[claim.as_json() for claim in result.claims or [result.privacy]],
            audit=None,
            seeds=[f"{seed:032x}" for seed in self.seeds],
            noise_entropy=f"{self.noise_entropy:032x}" if self.is_noisy else None,
            replayed_rows=[list(row) for row in result.checked_rows],
            confined=None if self.entry.kind == "baseline" else in_all(confined),
            cpu_seconds=result.cpu_seconds,
        )
        return replace(task, arrays_digest=task.digest_of_arrays())


def in_all(held: Sequence[Sequence[str]]) -> list[str]:
    """Returns the parts of confinement that every process held."""
    return [part for part in PARTS if all(part in parts for parts in held)]


def extra_of(result: RunResult) -> dict[str, Array]:
    """Returns the problem's measures besides regret by name, each a mean over agents, ``(seeds,)``.

    Totals of arms become shares of an agent's total, by rank of the arm: the agent's arm with the largest total
    ``deserved`` is the first, if the problem has that total.
    """
    found = {name: values.mean(axis=1) for name, values in result.info.items() if name not in _NOT_EXTRA}
    if totals := result.totals:
        # Each agent has arms of its own: one agent's third arm has nothing to do with another's third.
        order = np.argsort(-totals.get("deserved", next(iter(totals.values()))), axis=-1, kind="stable")
        for name, values in totals.items():
            shares = np.take_along_axis(values / values.sum(axis=-1, keepdims=True), order, -1).mean(axis=1)
            found |= {f"{name}[{k}]": shares[:, k] for k in range(shares.shape[1])}
    return found


@dataclass(frozen=True)
class PrivatizerAttack:
    """An attack on a privatizer, with the arguments that it has in a play.

    Attributes:
        mechanism: Entry point of the privatizer.
        arguments: Its arguments, without the noise's entropy.
        problem: Entry point of the problem.
        adjacency: Adjacency of the histories that the attack tells apart.
        delta: Delta at which the privatizer's claim is attacked.
        releases: Number of releases that the attacker sees.
        horizon: Horizon of the task.
    """

    mechanism: str
    arguments: Mapping[str, Any] = field(hash=False)
    problem: str
    adjacency: Adjacency
    delta: float
    releases: int
    horizon: int

    @classmethod
    def on(cls, play: EntryRun) -> Self | None:
        """Returns the attack on the privatizer that a run is behind; None without one, or where no claim is made."""
        part = privatizer_of(play.baseline)
        if part is None or not play.track.private:
            return None
        env = play.task.federation()
        changes = play.track.changes(env, play.baseline, play.entry.settings)
        arguments = play.baseline.wrapper_arguments(env, changes)[part]
        make = play.baseline.wrappers[part].make
        planned = arguments.get("releases") or play.task.rounds
        if not isinstance(planned, int):
            planned = make_schedule(planned).count(play.task.rounds)
        return cls(
            mechanism=f"{make.__module__}:{make.__qualname__}",
            arguments=arguments,
            problem=REGISTRY[play.task.env_id].federation,
            adjacency=play.track.adjacency,
            delta=play.track.delta,
            releases=max(1, min(_MOST_RELEASES, planned)),
            horizon=play.task.rounds,
        )

    @property
    def key(self) -> list[Any]:
        """All that its outcome follows from; see :attr:`~fedbandit_envs.leaderboard.runs.store.Cell.key`."""
        return ["attack", repr(self), _SAMPLES]

    @property
    def size(self) -> float:
        """The number of agent-rounds that take about as long."""
        return 2.5 * _SAMPLES * self.releases

    def split(self) -> list[Self]:
        """Returns the attack itself, its only shard."""
        return [self]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Attacks the privatizer, with noise that follows from the attack alone."""
        start = process_time()
        mechanism = resolve(self.mechanism)
        found = attack(
            partial(mechanism, **self.arguments),
            resolve(self.problem),
            self.adjacency,
            releases=self.releases,
            # Under continual release neighbours differ in one window; independent releases are all altered.
            altered=1 if issubclass(mechanism, ContinualPrivatizer) else None,
            samples=_SAMPLES,
            horizon=self.horizon,
        ).against(self.delta, "exact")
        advance(self.size)
        outcome = {
            "lower_bound": found.lower_bound if np.isfinite(found.lower_bound) else "infinity",
            "claim": found.claim.as_json(),
            "holds": found.holds,
            "releases": self.releases,
            "samples": _SAMPLES,
        }
        return {"outcome": np.array(json.dumps(outcome)), "cpu_seconds": np.array(process_time() - start)}

    def join(self, parts: Sequence[Arrays]) -> dict[str, Any]:
        """Returns the outcome, in the form of a result's ``audit``."""
        return dict(json.loads(str(parts[0]["outcome"])))
