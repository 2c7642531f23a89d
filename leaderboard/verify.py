"""Verification of a result: its form, its digests, the origin of its randomness, and its numbers, by replaying it.

All numbers of a replica (one simulated episode) follow from the replica's own seed. So a random sample of seeds,
unknown in advance, can be replayed at a fraction of the cost and must give exactly the same numbers. If the numbers of
one seed in n were changed, replaying k seeds detects it with probability k/n, and replaying all of them always does.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import mannwhitneyu

from fedbandit_envs.experiments.result import weakness
from fedbandit_envs.experiments.store import source_digest
from fedbandit_envs.leaderboard.engine import SHARDS, SOURCES, Row, only_play_of
from fedbandit_envs.leaderboard.entries import baseline_entry, find_code
from fedbandit_envs.leaderboard.plays import EntryRun, in_all
from fedbandit_envs.leaderboard.pooling import suspicion
from fedbandit_envs.leaderboard.provenance import machine
from fedbandit_envs.leaderboard.published import is_open
from fedbandit_envs.leaderboard.records import EditionSecrets, RecordError, Records, evaluation_seeds
from fedbandit_envs.leaderboard.result import Edition, ResultFile, TaskResult
from fedbandit_envs.leaderboard.sandbox.parts import PARTS
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import tracks_of

FALSE_ALARM = 1e-3
"""Probability, over all tasks together, that an honest result fails the comparison with new random numbers."""


class Finding(NamedTuple):
    """The outcome of one check.

    Attributes:
        what: Name of the check.
        holds: Whether the check was passed; None if it could not be made, or if its outcome is only information.
        detail: What was found, as text.
    """

    what: str
    holds: bool | None
    detail: str


def verify(result: ResultFile, folder: Path, seeds: int | None = 2, anew: bool = False) -> Iterator[Finding]:
    """Verifies a result; nothing is replayed if a check before it fails.

    Args:
        result: The result.
        folder: The folder of the result, with the record and the sources of submissions.
        seeds: Number of seeds of each task that are replayed; None for all.
        anew: Whether the entry is also played under new random seeds, which nobody can have selected for low regret:
            the check fails if the result's regret is lower than the new regret by more than chance.

    Yields:
        The outcome of each check, as soon as it is made.
    """
    for finding in _checks_before_replay(result, folder):
        yield finding
        if finding.holds is False:
            return
    row = _row(result, folder)
    # The choice of the rows that are played alone in the replay follows from a secret that nobody knew before.
    replayed = row.runs(EditionSecrets(result.edition, secrets.token_bytes(32)))
    # There can be no other play of the edition in a folder without shards, which is a copy, or in a read-only one.
    playable = os.access(folder / SHARDS, os.W_OK)
    alone = only_play_of(result.edition, folder / SHARDS) if playable else nullcontext()
    with alone:
        for play, recorded in zip(replayed, result.tasks, strict=True):
            yield _replay(play, recorded, seeds)
    if anew:
        fresh: list[TaskResult] = []
        for play, recorded in zip(row.runs(EditionSecrets.draw()), result.tasks, strict=True):
            try:
                fresh.append(_played(play))
            except Exception as error:
                # A submission may raise any error.
                yield Finding(f"random numbers of {recorded.task}", False, f"{type(error).__name__}: {error}")
                return
            yield _compare(fresh[-1], recorded, len(result.tasks))
        yield from _pooling("regret of watched rows, new random numbers", replayed[0], fresh)


def _row(result: ResultFile, folder: Path) -> Row:
    """Returns the leaderboard row that a result belongs to, ready to be played again.

    Raises:
        FileNotFoundError: The submission's file is not kept in the folder.
        ValueError: The submission's code is not the code that has played.
    """
    suite = SUITES[result.suite]
    code = "" if result.entry.kind == "baseline" else find_code(result.entry, folder / SOURCES)
    return Row(suite, tracks_of(suite)[result.track], result.entry, code)


def _checks_before_replay(result: ResultFile, folder: Path) -> Iterator[Finding]:
    """Makes all checks that need no replay; each relies on those before it."""
    yield _required("suite", result.suite in SUITES, f"{result.suite!r} is unknown")
    suite, tasks = SUITES[result.suite], result.tasks
    yield _same("suite's version", result.suite_version, suite.version)
    yield _required("track", result.track in tracks_of(suite), f"{result.track!r} is unknown")
    yield _same("tasks", [task.task for task in tasks], [task.id for task in suite.tasks])
    yield _same("digests of tasks", [task.digest for task in tasks], [task.digest for task in suite.tasks])
    arrays = [task.digest_of_arrays() for task in tasks]
    yield _same("digests of arrays", [task.arrays_digest for task in tasks], arrays)
    yield _same("edition", result.edition.id, Edition.of(result.edition.salt).id)
    for task, recorded in zip(suite.tasks, tasks, strict=True):
        drawn = [f"{seed:032x}" for seed in evaluation_seeds(suite, task, result.edition)]
        yield _same(f"seeds of {task.id}", list(recorded.seeds), drawn)
    yield from _on_record(result, folder)
    yield _confinement(result)
    yield _entry(result, folder)
    same = result.package["source_digest"] == source_digest()
    same = same and result.package.get("plugins", {}) == suite.packages
    other = "another state of the code: numbers of other dynamics will differ"
    yield Finding("package", same or None, "the same code" if same else other)
    theirs, ours = result.machine.get("processor"), machine()["processor"]
    if theirs != ours:
        yield Finding(
            "processor", None, f"{theirs} has played, this is {ours}: numbers may be rounded otherwise"
        )
    row = _row(result, folder)
    try:
        row.try_out()
    except (ValueError, TypeError, ArithmeticError) as error:
        yield Finding("settings", False, str(error))
        return
    secret = Records(folder).secret(result.edition.id)
    plays = row.runs(EditionSecrets(result.edition, secret or b""))
    for check in (_noise, _replayed_rows):
        for play, recorded in zip(plays, tasks, strict=True):
            yield from check(play, recorded, secret is not None)
    yield from _pooling("regret of watched rows", plays[0], tasks)


def _required(what: str, holds: bool, wrong: str) -> Finding:
    return Finding(what, holds, "as required" if holds else wrong)


def _same(what: str, found: Any, required: Any) -> Finding:
    """Returns the finding whether two values are equal; for lists of equal length it shows the first differing entry.

    Args:
        what: Name of the check.
        found: The value in the result.
        required: The value that it must have.
    """
    if found != required and isinstance(found, list) and len(found) == len(required):
        found, required = next(pair for pair in zip(found, required, strict=True) if pair[0] != pair[1])
    return _required(what, found == required, f"{found} is said; {required} is required")


def _on_record(result: ResultFile, folder: Path) -> Iterator[Finding]:
    """Checks that the result's edition and row are on record, and that the row was not withdrawn."""
    records = Records(folder)
    try:
        lines = records.lines()
    except RecordError as error:
        yield Finding("record", False, str(error))
        return
    if is_open(result, lines):
        yield Finding("seeds", None, "open: they may have been known before the row was played")
    if not lines:
        yield Finding("record", None, "there is none here: seeds may have been searched before the edition")
        return
    known = result.edition.salt in records.salts(SUITES[result.suite])
    yield Finding("edition on record", known, result.edition.id)
    line = records.latest().get(result.digest, {"what": ""})
    state = {"in": "taken in", "out": f"withdrawn: {line.get('reason')}"}
    detail = state.get(line["what"], "no such row was taken in")
    yield Finding("row on record", line["what"] == "in", detail)


def _confinement(result: ResultFile) -> Finding:
    """Checks that the result of a submission reports a sandbox, and that of a baseline none.

    The finding is undecided (None) if the kernel of the machine lacked a part of the sandbox's protection.
    """
    what, held = "confinement", [task.confined for task in result.tasks]
    if result.entry.kind == "baseline":
        none = all(parts is None for parts in held)
        return Finding(what, none, f"{'none' if none else held} is said of a baseline, which needs none")
    known = [parts for parts in held if parts is not None]
    if len(known) < len(held):
        return Finding(what, False, "a submission is said to have played without a process of its own")
    if missing := [part for part in PARTS if part not in in_all(known)]:
        return Finding(what, None, f"the kernel did not close {', '.join(missing)} to it")
    return Finding(what, True, "all parts are said to have held")


def _entry(result: ResultFile, folder: Path) -> Finding:
    """Checks that a result's entry is what can be played here again.

    A baseline's name, settings and digest must equal those of the installed package's baseline of the same name. A
    submission's code, kept in the folder or importable, must have the digest that the result has recorded.
    """
    try:
        if result.entry.kind == "baseline":
            return _same("entry", result.entry, baseline_entry(result.entry.source))
        find_code(result.entry, folder / SOURCES)
    except (OSError, ValueError, ImportError) as error:
        return Finding("entry", False, str(error))
    return Finding("entry", True, "its code is the code that has played")


def _noise(play: EntryRun, recorded: TaskResult, known: bool) -> Iterator[Finding]:
    """Checks the recorded entropy of the privacy noise.

    It must be there exactly if one of the entry's wrappers adds noise. If the edition's secret is known, it must also
    be the number that follows from the secret.

    Args:
        play: The entry's run of the task, with the entropy that follows from the secret.
        recorded: The task's result.
        known: Whether the edition's secret is known.
    """
    task, noisy = recorded.task, play.is_noisy
    if noisy != (recorded.noise_entropy is not None):
        yield Finding("noise", False, f"{task}: the entry {'has' if noisy else 'has no'} noise")
    elif noisy and known:
        yield _same(f"noise of {task}", recorded.noise_entropy, f"{play.noise_entropy:032x}")
    elif noisy:
        yield Finding("noise", None, f"{task}: the secret that it must follow from is not known here")


def _replayed_rows(play: EntryRun, recorded: TaskResult, known: bool) -> Iterator[Finding]:
    """Checks which rows were played alone, too; a row is one agent in one replica.

    Their number must be as required, and they must be distinct rows of the run. For a submission, they must also be
    those that follow from the edition's secret, if that is known.

    Args:
        play: The entry's run of the task, with the rows that follow from the secret.
        recorded: The task's result.
        known: Whether the edition's secret is known.
    """
    what, agents, said = f"watched rows of {recorded.task}", play.checked_agents, recorded.replayed_rows
    if play.entry.kind == "baseline":
        required = sum(min(part.checked_rows, len(part.seeds) * play.agents) for part in play.split())
    else:
        required = agents.size
    rows = {(i, j) for i, j in said if i < len(play.seeds) and j < play.agents}
    detail = f"{len(said)} are said, {len(rows)} are rows of their own; {required} are required"
    yield Finding(what, len(rows) == len(said) == required, detail)
    if known and play.entry.kind == "submission":
        drawn = [[i, j] for i, chosen in enumerate(agents.tolist()) for j in chosen]
        yield _same(f"choice of {what}", [list(row) for row in said], drawn)
    shape = {len(row) for row in recorded.row_regret}
    yield _required(f"regret of rows of {recorded.task}", shape == {play.agents}, f"rows of {shape} agents")


def _pooling(what: str, play: EntryRun, tasks: Sequence[TaskResult]) -> Iterator[Finding]:
    """Checks that rows which were not watched have no less regret than watched ones, where these were played first.

    Args:
        what: Name of the check.
        play: The entry's run of one task.
        tasks: Results of all tasks.
    """
    if play.rows_first():
        wrong = suspicion(tasks)
        yield _required(what, not wrong, wrong)


def _replay(play: EntryRun, recorded: TaskResult, seeds: int | None) -> Finding:
    """Plays a task again under a random sample of its seeds, and checks that all numbers are the recorded ones.

    Args:
        play: The entry's run of the task.
        recorded: The task's result.
        seeds: Number of seeds that are replayed; None for all.
    """
    count = len(play.seeds)
    chosen = sorted(secrets.SystemRandom().sample(range(count), min(seeds or count, count)))
    noise = int(recorded.noise_entropy or "0", 16)
    again = replace(play, seeds=tuple(play.seeds[i] for i in chosen), noise_entropy=noise)
    what = f"replay of {recorded.task}"
    try:
        wrong = _first_difference(_played(again), recorded, chosen)
    except OSError:
        # The machine has failed, such as by a full disk, which says nothing about the result.
        raise
    except Exception as error:
        # A submission may raise any error in the replay; in each case the result could not be reproduced.
        return Finding(what, False, f"{type(error).__name__}: {error}")
    return Finding(what, not wrong, wrong or f"{len(chosen)} of {count} seeds give the same numbers")


def _played(play: EntryRun) -> TaskResult:
    return play.join([part.play() for part in play.split()])


def _first_difference(played: TaskResult, recorded: TaskResult, chosen: Sequence[int]) -> str:
    """Returns a description of the first difference between a replay and the recorded result; empty if they agree.

    Args:
        played: Result of the replay, which has the chosen seeds only.
        recorded: The recorded result, with all seeds.
        chosen: Positions of the replayed seeds among all seeds.
    """
    if played.rounds != list(recorded.rounds):
        return "checkpoints differ"
    if unknown := recorded.extra.keys() - played.extra.keys():
        return f"extra has {sorted(unknown)}, which does not come about"
    regrets = zip(recorded.rounds, played.regret, recorded.regret, strict=True)
    pairs: dict[str, tuple[Sequence[Any], Sequence[Any]]]
    pairs = {"regret of rows": (played.row_regret, recorded.row_regret)}
    pairs |= {f"regret by round {t}": (new, old) for t, new, old in regrets}
    pairs |= {name: (new, recorded.extra.get(name, ())) for name, new in played.extra.items()}
    pairs |= {"messages": (played.messages, recorded.messages), "bytes": (played.bytes, recorded.bytes)}
    for name, (new, old) in pairs.items():
        for number, seed in zip(new, chosen, strict=True):
            was = old[seed] if seed < len(old) else "missing"
            if number != was:
                return f"{name}, seed {seed}: {was} is said; {number} comes about"
    if len(played.claims) != len(recorded.claims):
        return f"{len(recorded.claims)} claims are made; {len(played.claims)} can be"
    for spent, claimed in zip(played.claims, recorded.claims, strict=True):
        # Epsilon is not among these: the recorded one is the largest over all seeds, so it may be larger than the
        # largest one over the replayed seeds. Below it is required to be no smaller.
        alike = ("adjacency", "composition", "delta", "trust", "noise", "observer", "reason")
        same = all(claimed.get(name) == spent.get(name) for name in alike)
        if not same or weakness(claimed["epsilon"]) < weakness(spent["epsilon"]):
            return f"claim is {dict(claimed)}; {spent} can be made"
    return ""


def _compare(fresh: TaskResult, recorded: TaskResult, tasks: int) -> Finding:
    """Checks by a one-sided rank test that the recorded regret is not lower than the regret under new random seeds.

    Args:
        fresh: The task's result under new seeds.
        recorded: The task's result.
        tasks: Number of tasks, between which the probability of a false alarm is divided.
    """
    new, last = np.array(fresh.regret[-1]), np.array(recorded.regret[-1])
    chance = mannwhitneyu(last, new, alternative="less", method="auto").pvalue
    return Finding(
        f"random numbers of {recorded.task}",
        bool(chance >= FALSE_ALARM / tasks),
        f"regret {np.median(last):.4g} in the median, {np.median(new):.4g} with new random numbers "
        f"(p = {chance:.2g})",
    )
