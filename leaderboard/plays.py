"""Plays entries on a suite, in shards that are kept, and verifies lines of the table by playing them again.

All numbers of a run follow from its seed and from the entry's noise. So a random sample of seeds, unknown in advance,
is played again at a fraction of the cost. If the numbers of one seed in n were changed, playing k of them finds it with
probability k/n, and playing all of them always does.

The policy of a file acts in a process of its own that is sent observations through a pipe and nothing else. This keeps
it from the environment's objects; it does not confine what its code does to the machine: an entry is read before it is
run. In the replay it is played in another way than it was: each agent has a process of its own, which sees no other
agent. Before that, where agents send nothing, one agent plays its episodes alone, in an empty folder, so that
nothing exists yet that it could have been told.
"""

import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.resources import files
from io import BytesIO
from math import isclose, isnan, nan
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.basics.arrays import Array, Arrays, plain
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import imported, named_files
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.experiments.execute import play as play_here
from fedbandit_envs.experiments.result import simulate, split_seeds
from fedbandit_envs.experiments.store import Cell, Store, source_digest
from fedbandit_envs.leaderboard import ALONE, suites
from fedbandit_envs.leaderboard.suites import SUITES, BoardError, Edition, Suite, Task, Track
from fedbandit_envs.leaderboard.table import Entry, Line, ResultTable, Row, circumstances
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.audit import Audit, attack
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError
from fedbandit_envs.wrappers.transport.schedule import make_schedule

SHARDS = ".shards"

Player = Callable[[Sequence[Cell], Path], None]
"""A function that plays those shards of given runs which have no file in a given folder yet."""

# Largest number of releases that an attack observes. The first releases of a mechanism reveal most: with more of them
# the attack is slower and its lower bound on epsilon no larger.
_MOST_RELEASES = 4
_SAMPLES = 20_000
_ROUNDING = 1e-9

_ISOLATED = """
--unshare-all --die-with-parent --new-session --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /var/tmp
--chdir /tmp --setenv HOME /tmp --setenv TMPDIR /tmp --setenv NUMBA_CACHE_DIR /tmp/kernels"""


_SECONDS = 600
"""Longest time that an answer may take."""

_ZIP = b"PK"  # how arrays in NumPy's format begin, and no error does
_SERVE = "from fedbandit_envs.leaderboard import _serve; _serve({})"


class FilePolicy:
    """A policy of a file, in processes that begin with the episode in folders with the file's code alone.

    Attributes:
        round: Number of rounds that have been played in the episode.
    """

    def __init__(self, entry: Entry, agents: Sequence[int] | None = None) -> None:
        """Keeps what makes the policy; processes start with :meth:`reset`.

        Args:
            entry: The entry, with the file's code.
            agents: Agents that play in processes of their own, each of which sees nothing of other agents; all agents,
                or one like which the others act. None for one process of all agents.
        """
        self._made = (entry.code, entry.source.rpartition(":")[2], dict(entry.settings.get("policy", {})))
        self._rows = [slice(None)] if agents is None else [slice(agent, agent + 1) for agent in agents]
        self._children: list[tuple[Connection, Popen[bytes], TemporaryDirectory[str]]] = []
        self.round = 0

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Ends the processes, starts new ones in new folders, and resets the policy there; see :meth:`Policy.reset`.

        Raises:
            BoardError: The policy cannot be loaded or reset.
        """
        self.close()
        self.round, self._agents = 0, seeds.shape[1]
        for rows in self._rows:
            folder = TemporaryDirectory(ignore_cleanup_errors=True)
            pipe, end = Pipe()
            words, where = [sys.executable, "-c", _SERVE.format(end.fileno())], folder.name
            environ = {**os.environ, "TMPDIR": where}
            process = Popen(
                words, pass_fds=[end.fileno()], stdout=DEVNULL, stderr=DEVNULL, cwd=where, env=environ
            )
            end.close()
            self._children.append((pipe, process, folder))
            self._ask(pipe, self._made, spec, seeds[:, rows])

    def act(self, observation: Arrays) -> Any:
        """Returns the policy's action; see :meth:`Policy.act`.

        Raises:
            BoardError: A process does not answer in time, has ended, or sends something that is not an action.
        """
        self.round += 1
        shown = observation | concealed(observation)
        seen = [{name: part[:, rows] for name, part in shown.items()} for rows in self._rows]
        actions = [self._ask(child[0], own) for child, own in zip(self._children, seen, strict=True)]
        whole = {name: np.concatenate([one[name] for one in actions], axis=1) for name in actions[0]}
        if whole and next(iter(whole.values())).shape[1] == 1:
            whole = {name: np.repeat(part, self._agents, axis=1) for name, part in whole.items()}
        return whole.get(ALONE, whole)

    def close(self) -> None:
        """Ends all processes and removes their folders."""
        for pipe, process, folder in self._children:
            process.kill()
            process.wait()
            pipe.close()
            folder.cleanup()
        self._children = []

    def _ask(self, pipe: Connection, *message: Any) -> Arrays:
        """Sends a message to a process and returns the arrays of its answer; nothing in it is run as code."""
        try:
            pipe.send(message)
            answer = pipe.recv_bytes() if pipe.poll(_SECONDS) else b"no answer in time"
        except (EOFError, OSError):
            answer = b"its process has ended"
        if not answer.startswith(_ZIP):
            self.close()
            # The text is the entry's: without control characters it cannot change what a terminal shows elsewhere.
            raise BoardError(f"round {self.round}: {answer.decode(errors='replace')!a}")
        with np.load(BytesIO(answer)) as arrays:
            return dict(arrays)


@dataclass(frozen=True)
class Play:
    """The run of an entry on a task under some of an edition's seeds, of which shards are played and stored.

    Attributes:
        task: The task.
        track: The track, which limits by wrappers what agents send.
        entry: The entry that plays.
        seeds: The seeds.
    """

    task: Task
    track: Track
    entry: Entry
    seeds: Sequence[int]

    @property
    def key(self) -> list[Any]:
        """All settings that determine the numbers, as JSON data; see :attr:`~.experiments.store.Cell.key`."""
        entry, task = self.entry, self.task
        source = [entry.source, entry.settings, hashlib.sha256(entry.code).hexdigest()]
        noise = entry.noise.get(task.id)
        return ["entry", task.digest, task.source, repr(self.track), source, noise, *map(str, self.seeds)]

    @cached_property
    def agents(self) -> int:
        """Number of agents in the environment."""
        return self.task.federation().max_num_agents

    @property
    def size(self) -> float:
        """Number of agent-rounds to play."""
        return float(self.task.rounds * len(self.seeds) * self.agents)

    def split(self) -> list["Play"]:
        """Splits the seeds into shards of about 500 rows (one agent under one seed)."""
        return [replace(self, seeds=seeds) for seeds in split_seeds(self.seeds, self.agents)]

    @cached_property
    def baseline(self) -> Baseline:
        """The baseline that plays; for a file, an unregistered one with the wrappers that its track sets."""
        settings = self.entry.settings
        if self.entry.is_file:
            wrappers = self.track.submitted(settings)
            return Baseline("submitted", "-", FederatedEnv, partial(FilePolicy, self.entry), {}, wrappers)
        suites.require_no_code(settings)
        require_choice("source", self.entry.source, BASELINES)
        known = BASELINES[self.entry.source]
        wrappers = {part: one._replace(kwargs=settings[part]) for part, one in known.wrappers.items()}
        return replace(known, policy_kwargs=settings["policy"], wrappers=wrappers)

    def stack(self) -> FederatedEnv:
        """Makes the task's environment with all wrappers of the track and of the entry around it."""
        digits = self.entry.noise.get(self.task.id)
        noise = None if digits is None else int(digits, 16)
        return self.track.wrap(self.task.federation(), self.baseline, noise)

    def play(self, policy: Any = None) -> Arrays:
        """Plays one episode a seed and returns the arrays that the shard's file keeps.

        Args:
            policy: A policy that plays in place of the entry's; None for the entry's.

        Returns:
            Each agent's ``regret``, ``half`` (regret after half of the rounds), ``messages`` and ``bytes``, float64
            ``(seeds, agents)``, and the ``epsilon`` and ``delta`` of the claim for these episodes.

        Raises:
            BoardError: The policy of a file fails or returns actions that are not allowed, or the episodes did not keep
                the track's limits.
        """
        env, policy, rounds = self.stack(), policy or self.baseline.make_policy(), self.task.rounds
        try:
            played = simulate(env, policy, self.seeds, checkpoints=(rounds // 2, rounds))
        except (ValueError, TypeError, BudgetExhaustedError) as error:
            # The entry fails, or an environment or a wrapper refuses its action.
            if not self.entry.is_file:
                raise
            raise BoardError(f"{self.entry.name}, {self.task.id}, {error}") from error
        finally:
            if self.entry.is_file:
                policy.close()
        claim = self.track.check(env)
        half, regret = played.regret
        silence = dict.fromkeys(("messages", "bytes"), np.zeros_like(regret))
        epsilon = np.array(nan if claim.epsilon is None else claim.epsilon)
        claimed = {"epsilon": epsilon, "delta": np.array(claim.delta)}
        return {"regret": regret, "half": half, **silence, **played.traffic, **claimed}

    def join(self, parts: Sequence[Arrays]) -> list[Line]:
        """Returns the lines of the table for the arrays that :meth:`play` has returned for each shard."""
        # The largest loss of all shards; NumPy's maximum of an unknown one, NaN, is NaN.
        claim = [float(np.max([part[name] for part in parts])) for name in ("epsilon", "delta")]
        measures = [
            np.concatenate([part[name].mean(axis=1) for part in parts]).tolist()
            for name in ("regret", "half", "messages", "bytes")
        ]
        suite, edition, track, name = self.entry.row
        return [
            Line(suite, edition, name, track, self.task.id, f"{seed:032x}", *measured, *claim)
            for seed, *measured in zip(self.seeds, *measures, strict=True)
        ]


def attacked(play: Play) -> list[Audit]:
    """Attacks the privatizer of a run; nothing comes of a run without one, or whose track is not private."""
    part = suites.privatizer_of(play.baseline)
    if part is None or not play.track.private:
        return []
    env, make = play.task.federation(), play.baseline.wrappers[part].make
    arguments = play.baseline.wrapper_arguments(env, play.track.changes(env, play.baseline))[part]
    planned = arguments.get("releases") or play.task.rounds
    if not isinstance(planned, int):
        planned = make_schedule(planned).count(play.task.rounds)
    evidence = attack(
        partial(make, **arguments),
        type(env.unwrapped),
        play.track.adjacency,
        releases=max(1, min(_MOST_RELEASES, planned)),
        # A privatizer for continual release protects one observation in one window between releases, so only one
        # window may differ. The others have independent noise in each release, and all of their windows differ.
        altered=1 if make is ContinualPrivatizer else None,
        samples=_SAMPLES,
        horizon=play.task.rounds,
    )
    return [evidence.against(play.track.delta, "exact")]


def make_entry(
    suite: Suite, edition: Edition, track: Track, name: str, file: str = "", settings: Mapping[str, Any] = {}
) -> Entry:
    """Returns a new entry that can be played, with noise that nobody could have known before.

    Args:
        suite: The suite.
        edition: The edition.
        track: The track.
        name: Name of a baseline, or of the entry that the file gets.
        file: ``"file.py:Class"``; empty for a baseline.
        settings: Arguments of the file's policy and wrappers.

    Raises:
        OSError: The file cannot be read.
        BoardError: The entry needs other files or sets what the track sets, or no guarantee as strong as the track's
            can be given for it.
        TypeError: A wrapper has no argument of a name that the entry sets.
        UnfitError: A baseline's policy needs something that the environment does not have.
        ValueError: ``file`` is not of that form, or an argument is out of its range.
    """
    path, _, attribute = file.rpartition(":")
    if file and not path.endswith(".py"):
        raise ValueError(f"policy is {file!r}; 'file.py:Class' is required")
    code = Path(path).read_bytes() if file else b""
    own = Path(path).resolve().parent
    needed = [str(one) for one in imported([Path(path)]).values() if own in one.parents] if file else []
    if needed := [*needed, *filter(os.path.isabs, named_files(settings))]:
        raise BoardError(f"{name} needs {', '.join(needed)}; an entry is one file, in which all must be")
    noisy = track.private
    if not file:
        baseline = BASELINES[name].at(track.epsilon)
        noisy = suites.privatizer_of(baseline) is not None
        wrappers = {part: made.kwargs for part, made in baseline.wrappers.items()}
        settings = {"policy": baseline.policy_kwargs, **wrappers}
    entry = Entry(
        suite=suite.name,
        edition=edition.id,
        track=track.name,
        name=name,
        source=f"{Path(path).name}:{attribute}" if file else name,
        settings=json.loads(json.dumps(plain(settings))),
        digest=hashlib.sha256(code).hexdigest() if file else source_digest(),
        noise={task.id: secrets.token_hex(16) for task in suite.tasks if noisy},
        is_open=edition in suites.published(suite),
        **circumstances(),
        code=code,
    )
    # What the entry runs behind is built, so that wrong settings show before anything is played.
    for play in plays_of(suite, edition, entry):
        env = play.stack()
        env.reset_batch([0])
        track.check(env)
        if not file:
            play.baseline.make_policy().reset(env.policy_spec, row_seeds([0], env.max_num_agents))
    return entry


def plays_of(suite: Suite, edition: Edition, entry: Entry) -> list[Play]:
    """Returns what is played for an entry of an edition: one run for each task of its suite."""
    track = suites.tracks_of(suite)[entry.track]
    return [Play(task, track, entry, edition.seeds(suite, task)) for task in suite.tasks]


def run(
    suite: Suite, edition: Edition, entries: Sequence[Entry], folder: Path, play: Player = play_here
) -> ResultTable:
    """Plays entries in an edition, and adds their runs to the table of a folder.

    It may be killed and called again: entries are kept before they play, with their noise, and so is every shard that
    was finished. An entry that the table has already is not played again.

    Args:
        suite: The suite.
        edition: The edition.
        entries: The entries; for one that the folder has already, the same one in the folder is played.
        folder: Folder of results.
        play: Function that plays the missing shards; by default in this process.

    Returns:
        The results in the folder.

    Raises:
        BoardError: A file's policy fails, an entry violates a limit of its track, or the folder has another entry of
            that name.
    """
    table = ResultTable.load(folder, new=True)
    for entry in entries:
        known = table.entries.setdefault(entry.row, entry)
        if (known.source, known.settings, known.code) != (entry.source, entry.settings, entry.code):
            raise BoardError(f"{folder} has another {entry.name} on {entry.track}; another name is required")
    table.editions[edition.id] = edition
    table.save(folder)
    new = [entry.row for entry in entries if entry.row not in table.lines]
    runs = {row: plays_of(suite, edition, table.entries[row]) for row in new}
    play([run for own in runs.values() for run in own], folder / SHARDS)
    for row, own in runs.items():
        table.lines[row] = [line for run in own for line in Store(folder / SHARDS).load(run)]
        if found := [audit for run in own for audit in attacked(run)]:
            bound, holds = max(one.lower_bound for one in found), all(one.holds for one in found)
            table.entries[row] = replace(table.entries[row], audited=float(bound), holds=holds)
    table.save(folder)
    return table


def baselines_of(suite: Suite) -> list[str]:
    """Returns the names of all baselines for the problem (class of environments) of a suite."""
    return [name for name, baseline in BASELINES.items() if baseline.fits(suite.tasks[0].env_id)]


def verify(table: ResultTable, row: Row, seeds: int = 2) -> Iterator[str]:
    """Verifies a row of a table; nothing is played if a check before it fails.

    Args:
        table: The results.
        row: The row.
        seeds: Number of seeds of each task that are played again, at most as many as there are.

    Yields:
        What holds, as soon as it has been checked, and notes.

    Raises:
        OSError: The machine fails, which says nothing about the row.
        Exception: The row is refuted; in the replay, an entry may raise any error.
    """
    entry = table.entries[row]
    if entry.is_file and entry.digest != hashlib.sha256(entry.code).hexdigest():
        raise BoardError(f"{entry.digest}.py has been changed since {entry.name} played")
    lines = table.runs_of(row)
    plays = plays_of(SUITES[row.suite], table.editions[row.edition], entry)
    for play in plays:
        # Entries that have no such baseline, or settings which the track does not allow, fail here.
        play.stack()
    yield f"entry: {entry.source}, {len(lines)} runs of edition {row.edition}"
    if entry.is_open:
        yield "note: the seeds were public before the entry played"
    if not entry.is_file and entry.digest != source_digest():
        yield "note: this package has other sources than played; the numbers decide"
    for play in plays:
        recorded = [line for line in lines if line.task == play.task.id]
        count = len(recorded)
        chosen = sorted(secrets.SystemRandom().sample(range(count), min(seeds, count)))
        again = replace(play, seeds=tuple(play.seeds[number] for number in chosen))
        parts = [_apart(part) if entry.is_file else part.play() for part in again.split()]
        for new, number in zip(again.join(parts), chosen, strict=True):
            _require_equal(new, recorded[number])
        yield f"replay of {play.task.id}: {len(chosen)} of {count} seeds give the same numbers"


def _apart(play: Play) -> Arrays:
    """Plays an entry's file with a process for each agent, after one agent has played alone where none sends.

    Raises:
        BoardError: The agent that has played alone did not do the same among the others.
    """
    agent = secrets.randbelow(play.agents)
    # If agents hear or affect each other, what one sees depends on what the others do.
    apart = play.track.messages == 0 and not play.task.federation().interacting
    alone = play.play(FilePolicy(play.entry, [agent])) if apart else None
    played = play.play(FilePolicy(play.entry, range(play.agents)))
    if alone and (alone["regret"] != played["regret"])[:, agent].any():
        raise BoardError(f"agent {agent} acts otherwise when it plays before the others")
    return played


def _require_equal(played: Line, recorded: Line) -> None:
    """Raises :class:`BoardError` if a replay has other numbers than the recorded run, beyond rounding."""
    for name in ("regret", "half", "messages", "bytes", "delta"):
        new, old = getattr(played, name), getattr(recorded, name)
        # Processors round sums of products differently.
        if old is not None and not isclose(new, old, rel_tol=_ROUNDING):
            raise BoardError(f"replay of {played.task}, seed {played.seed}: {name} is {new}, not {old}")
    # The recorded epsilon is the largest one over all seeds, so it may be larger than that of the chosen ones.
    unknown = isnan(played.epsilon) and isnan(recorded.epsilon)
    if not (unknown or played.epsilon <= recorded.epsilon):
        raise BoardError(f"replay of {played.task}: epsilon is {played.epsilon}, not {recorded.epsilon}")


def isolated(folder: Path) -> list[str]:
    """Returns the words of a command line that run the words behind them under bubblewrap.

    They have no network, see no other process, and can write only to ``/tmp``, which is empty at first: temporary files
    and compiled kernels go there. The home folder is empty, too, apart from Python, this package and the results.

    Args:
        folder: Folder of results.

    Raises:
        FileNotFoundError: There is no bubblewrap on this machine.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise FileNotFoundError("--isolated needs the program bwrap (bubblewrap), which this machine lacks")
    package = Path(str(files("fedbandit_envs"))).parent
    seen = [sys.prefix, sys.base_prefix, *filter(None, sys.path), str(package), str(folder.resolve())]
    words = [program, *_ISOLATED.split(), "--tmpfs", str(Path.home())]
    for path in filter(os.path.exists, seen):
        words += ["--ro-bind", path, path]
    return words
