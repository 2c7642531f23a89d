"""What is played for a leaderboard row: the entry's run of each task, and rows alone.

Both are split into shards and stored like all runs (:class:`~fedbandit_envs.experiments.store.Cell`).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.experiments.result import RunResult, claims_of, cpu_seconds
from fedbandit_envs.experiments.simulate import simulate, split_seeds
from fedbandit_envs.leaderboard.result import Entry, TaskResult
from fedbandit_envs.leaderboard.row_check import RowCheck, RowsAlone, WholeRun
from fedbandit_envs.leaderboard.sandbox import EntryError, SandboxedPolicy
from fedbandit_envs.leaderboard.sandbox.parts import PARTS
from fedbandit_envs.leaderboard.suites import Task
from fedbandit_envs.leaderboard.tracks import Track
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

# Entries of the step information that come from transports and privatizers; a result has other fields for them.
_NOT_EXTRA = ("messages", "bytes", "lost", "epsilon_spent", "clipped_releases")
# Prefix of the names of arrays with actions, in the file of rows that were played alone.
_ACTION = "action/"

Player = TypeVar("Player", WholeRun, RowsAlone)


@dataclass(frozen=True)
class EntryRun:
    """The run of an entry on a task under all evaluation seeds; or a shard of it, with some of the seeds.

    Attributes:
        task: The task.
        track: The track, which limits by wrappers what agents send.
        entry: The baseline or submission that plays.
        seeds: Evaluation seeds, one for each replica.
        noise_entropy: Number from which the privatizer's noise is generated.
        row_check_seed: Seed of the random choice of rows that are also played alone; a row is one agent in one replica.
        checked_rows: Number of these rows: in each replica for a submission, in each shard for a baseline.
        code: Place of a submission's code, in a form that
            :class:`~fedbandit_envs.leaderboard.sandbox.SandboxedPolicy` accepts; empty for a baseline.
        alone: What :meth:`RowsPlay.play` has returned for this shard, see :meth:`after`; no part of :attr:`key`.
    """

    task: Task
    track: Track
    entry: Entry
    seeds: Sequence[int]
    noise_entropy: int
    row_check_seed: int
    checked_rows: int
    code: str = ""
    alone: Sequence[Arrays] = field(default=(), repr=False, compare=False)

    @property
    def key(self) -> list[Any]:
        """All settings that determine the run's numbers, as a list that JSON can represent.

        The name of a shard's file is a digest of it; see :attr:`~fedbandit_envs.experiments.store.Cell.key`.
        """
        # As text, since tracks hold infinity and seeds are large integers, which JSON cannot represent exactly.
        return ["entry", self.task.digest, repr(self.track), asdict(self.entry),
                *map(repr, (self.seeds, self.noise_entropy, self.row_check_seed)), self.checked_rows,
                *sorted(self.task.packages.values())]  # fmt: skip

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
        """The baseline that plays; for a submission, an unregistered one that has the wrappers which its track sets."""
        if self.entry.kind == "baseline":
            return BASELINES[self.entry.source]
        wrappers = self.track.submitted(self.entry.settings)
        return Baseline("submitted", "-", FederatedEnv, SandboxedPolicy, {}, wrappers)

    @property
    def is_noisy(self) -> bool:
        """Whether one of the wrappers between entry and environment adds privacy noise."""
        return find_layer(self.stack(), "noise") is not None

    def stack(self) -> FederatedEnv:
        """Makes the task's environment with all wrappers of the track and of the entry around it."""
        env = self.task.federation()
        return self.track.wrap(env, self.baseline, self.noise_entropy, self.entry.settings)

    @property
    def checked_agents(self) -> Array:
        """Agents of each replica that a submission also plays alone, ``(replicas, checked_rows)`` or all if fewer.

        They follow from :attr:`row_check_seed` and the replica's seed, so that all shards of a run draw alike.
        """
        drawn = [
            np.random.default_rng([self.row_check_seed, seed]).permutation(self.agents) for seed in self.seeds
        ]
        return np.array(drawn)[:, : self.checked_rows]

    @property
    def plays_rows_first(self) -> bool:
        """Whether rows are played alone before all rows are played: for submissions on tracks without messages.

        There a row's observations do not depend on what other rows do, except in problems whose agents interact.
        """
        problem = resolve(REGISTRY[self.task.env_id].federation)
        return self.entry.kind == "submission" and self.track.messages == 0 and not problem.interacting

    def rows_first(self) -> list["RowsPlay"]:
        """Returns what must be played before this run, one after the other; nothing if rows are not played first."""
        if not self.plays_rows_first:
            return []
        return [RowsPlay(self, number) for number in range(min(self.checked_rows, self.agents))]

    def after(self, load: Callable[["RowsPlay"], Arrays]) -> "EntryRun":
        """Returns this shard, ready to be played after the rows that are played alone before it.

        Args:
            load: Function that returns what :meth:`RowsPlay.play` has returned for such rows.
        """
        return replace(self, alone=tuple(map(load, self.rows_first())))

    def play(self, advance: Callable[[float], None] = lambda played: None) -> Arrays:
        """Plays one episode a seed, all of them at once, and returns the arrays that the shard's file keeps.

        The policy of a submission has a process of its own, which ends with the run. If rows must be played alone
        before, that is done first unless :attr:`alone` has the outcome, and the policy must act in these rows as it did
        then. Otherwise the actions are kept, and when the process has ended, new ones that see some rows alone must act
        like that in the same episode.

        Args:
            advance: Called with the number of agent-rounds played since its last call, for progress bars.

        Raises:
            TrackError: The episode violates a limit of the track.
            MixedRowsError: The action for a checked row differs from the action of a policy that sees that row alone.
            EntryError: The policy of a submission fails, or returns actions that are not allowed.
        """
        if not self.alone and self.rows_first():
            return self.after(RowsPlay.play).play(advance)
        start, env = cpu_seconds(), self.stack()
        confined = None
        if self.entry.kind == "baseline":
            check = RowCheck(self.baseline.make_policy(), self.baseline.make_policy, self.checked_rows)
            result, rows = simulate(env, check, self.seeds, advance), check.rows
        else:
            agents = self.checked_agents
            rows = [(replica, int(agent)) for replica, drawn in enumerate(agents) for agent in drawn]
            held = [json.loads(str(part["confined"])) for part in self.alone]
            whole = partial(WholeRun, agents=agents, alone=self._actions_alone)
            result, played, of_child = self.play_confined(env, whole, advance)
            held.append(of_child)
            if played.actions is not None:
                for column in agents.T:
                    again = partial(RowsAlone, agents=column[:, None], whole=played.actions)
                    held.append(self.play_confined(self.stack(), again)[2])
            confined = in_all(held)
        self.track.check(env)
        result = replace(
            result,
            # The leaderboard trusts nobody, so the smaller losses that single observers see do not count.
            claims=[
                claim for claim in claims_of(env, self.track.delta, "exact") if claim.observer == "everybody"
            ],
            cpu_seconds=cpu_seconds() - start + float(sum(part["cpu_seconds"] for part in self.alone)),
        )
        checked = np.array(rows, np.int64).reshape(-1, 2)
        return {**result.as_arrays(), "confined": np.array(json.dumps(confined)), "checked_rows": checked}

    @property
    def _actions_alone(self) -> Arrays:
        """Actions of the rows that have been played alone before, by name, ``(rounds, replicas, rows, ...)``."""
        named = [name for part in self.alone[:1] for name in part if name.startswith(_ACTION)]
        return {
            name.removeprefix(_ACTION): np.concatenate([part[name] for part in self.alone], axis=2)
            for name in named
        }

    def play_confined(
        self,
        env: FederatedEnv,
        make: Callable[[Policy], Player],
        advance: Callable[[float], None] = lambda played: None,
    ) -> tuple[RunResult, Player, Sequence[str]]:
        """Plays the episodes with the submission's policy, in a process of its own that ends with them.

        Args:
            env: The environment with its wrappers.
            make: Function that makes the player of all rows, which uses the submission's policy.
            advance: Called with the number of agent-rounds played since its last call.

        Returns:
            The result, the player, and the parts of confinement that held in the process.

        Raises:
            EntryError: The policy fails, or returns actions that are not allowed; the message names entry and task.
        """
        with SandboxedPolicy(self.code, settings=dict(self.entry.settings.get("policy", {}))) as child:
            player = make(child)
            try:
                return simulate(env, player, self.seeds, advance), player, child.confined
            except (EntryError, ValueError, TypeError, BudgetExhaustedError) as error:
                # Errors in the submission's own process arrive as EntryError, which names the round (if a round had
                # begun). All other errors come from the environment or a wrapper that refuses the submission's action.
                where = "" if isinstance(error, EntryError) else f"round {player.round}: "
                raise EntryError(f"{self.entry.name}, {self.task.id}, {where}{error}") from error

    def join(self, parts: Sequence[Arrays]) -> TaskResult:
        """Returns the task's part of a result file, put together from its shards; its ``audit`` is still None.

        Args:
            parts: The arrays that :meth:`play` returned for each shard.
        """
        result, first, checked = RunResult.joined(parts), 0, []
        for part in parts:
            checked += (part["checked_rows"] + [first, 0]).tolist()
            first += part["regret"].shape[1]
        nothing = np.zeros((len(self.seeds), 1))
        sent = {name: result.traffic.get(name, nothing).mean(axis=1) for name in ("messages", "bytes")}
        confined = [json.loads(str(part["confined"])) for part in parts]
        task = TaskResult(
            task=self.task.id,
            digest=self.task.digest,
            rounds=result.rounds.tolist(),
            # The leaderboard ranks the mean over agents, so that single agents' regret is kept for the last round only.
            regret=result.regret.mean(axis=2).tolist(),
            row_regret=result.regret[-1].tolist(),
            extra={name: values.tolist() for name, values in extra_of(result).items()},
            messages=sent["messages"].tolist(),
            bytes=sent["bytes"].tolist(),
            claims=[claim.as_json() for claim in result.claims or [result.privacy]],
            audit=None,
            seeds=[f"{seed:032x}" for seed in self.seeds],
            noise_entropy=f"{self.noise_entropy:032x}" if self.is_noisy else None,
            replayed_rows=checked,
            confined=None if self.entry.kind == "baseline" else in_all(confined),
            cpu_seconds=result.cpu_seconds,
        )
        return replace(task, arrays_digest=task.digest_of_arrays())


@dataclass(frozen=True)
class RowsPlay:
    """One row of each replica of a run, played alone before all rows are played: a row is one agent in one replica.

    A row's whole episode is played in a process that ends before any other row of its replica is played, so that
    nothing exists yet that it could have been told about them. Rows of different replicas may share a process, since
    replicas share no hidden parameters.

    Attributes:
        run: The run, or a shard of it.
        number: Which of the run's checked rows of each replica, from 0.
    """

    run: EntryRun
    number: int

    @property
    def key(self) -> list[Any]:
        """All settings that determine the actions; see :attr:`~fedbandit_envs.experiments.store.Cell.key`."""
        return ["alone", self.number, *self.run.key]

    @property
    def size(self) -> float:
        """Number of agent-rounds to play; those of agents that only make the episode complete are included."""
        return self.run.size

    def split(self) -> list["RowsPlay"]:
        """Splits the run's seeds into the same shards as :meth:`EntryRun.split`."""
        return [replace(self, run=shard) for shard in self.run.split()]

    def play(self, advance: Callable[[float], None] = lambda played: None) -> Arrays:
        """Plays the rows alone and returns the arrays that the shard's file keeps: actions, CPU time, confinement.

        Args:
            advance: Called with the number of agent-rounds played since its last call, for progress bars.

        Raises:
            EntryError: The policy fails, or returns actions that are not allowed.
        """
        start = cpu_seconds()
        make = partial(RowsAlone, agents=self.run.checked_agents[:, self.number, None])
        _, rows, confined = self.run.play_confined(self.run.stack(), make, advance)
        return {
            **{f"{_ACTION}{name}": part for name, part in rows.actions.items()},
            "confined": np.array(json.dumps(confined)),
            "cpu_seconds": np.array(cpu_seconds() - start),
        }

    def join(self, parts: Sequence[Arrays]) -> Sequence[Arrays]:
        """Returns the arrays of all shards."""
        return parts


def in_all(held: Sequence[Sequence[str]]) -> list[str]:
    """Returns the parts of confinement that held in every process, in the order of :data:`PARTS`.

    Args:
        held: For each process the parts that the kernel enforced on it.
    """
    return [part for part in PARTS if all(part in parts for parts in held)]


def extra_of(result: RunResult) -> dict[str, Array]:
    """Returns the problem's measures besides regret, by name, each a mean over agents for each seed, ``(seeds,)``.

    Measures that have one total for each arm, such as the number of pulls, become shares: the arm's total divided by
    the agent's total over all arms. An agent's arms are numbered from the largest total of ``deserved`` down, so that
    ``pulls[0]`` is the share of the most deserving arm; problems without ``deserved`` use their first measure instead.
    """
    found = {name: values.mean(axis=1) for name, values in result.info.items() if name not in _NOT_EXTRA}
    if totals := result.totals:
        # Each agent has arms of its own, so that means over agents by the arm's index would mix different arms: arms
        # are matched by their rank instead.
        order = np.argsort(-totals.get("deserved", next(iter(totals.values()))), axis=-1, kind="stable")
        for name, values in totals.items():
            shares = np.take_along_axis(values / values.sum(axis=-1, keepdims=True), order, -1).mean(axis=1)
            found |= {f"{name}[{k}]": shares[:, k] for k in range(shares.shape[1])}
    return found
