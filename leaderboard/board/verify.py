"""Verification of a result: its form, its digests, the origin of its randomness, and its numbers, by replaying it.

Every replica follows from its own seed. So a random sample of seeds, unknown in advance, can be replayed at a fraction
of the cost and must give exactly the same numbers. If the numbers of one seed in n were changed, replaying k seeds
detects it with probability k/n, and replaying all of them always does.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.leaderboard.board.editions import (
    EditionSecrets,
    as_hex,
    draw,
    edition_of,
    evaluation_seeds,
)
from fedbandit_envs.leaderboard.board.engine import SOURCES, Row, try_out
from fedbandit_envs.leaderboard.board.entries import as_read, baseline_entry, find_code, in_all
from fedbandit_envs.leaderboard.board.plays import EntryRun
from fedbandit_envs.leaderboard.board.records import RecordError, Records
from fedbandit_envs.leaderboard.board.result import ResultFile, TaskResult
from fedbandit_envs.leaderboard.board.suites import SUITES
from fedbandit_envs.leaderboard.board.tracks import tracks_of
from fedbandit_envs.leaderboard.runs.result import weakness
from fedbandit_envs.leaderboard.runs.source import source_digest
from fedbandit_envs.leaderboard.sandbox.confinement import PARTS

FALSE_ALARM = 1e-3
"""Probability that the comparison with new random numbers refutes an honest result, over all its tasks."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes:
        what: What was checked.
        holds: Whether it is as required; None where it could not be checked, or is only worth knowing.
        detail: What was found.
    """

    what: str
    holds: bool | None
    detail: str


def verify(result: ResultFile, folder: Path, seeds: int | None = 2, anew: bool = False) -> Iterator[Finding]:
    """Verifies a result; nothing is replayed if a check before it fails.

    Args:
        result: The result.
        folder: The folder of the result, with the record and kept sources of submissions.
        seeds: Number of seeds of each task that are replayed; None for all.
        anew: Whether it is also played with new random numbers, which nobody can have searched: regret that is lower
            in the result by more than chance refutes it.

    Yields:
        The findings, as they are made.
    """
    for finding in _checks_before_replay(result, folder):
        yield finding
        if finding.holds is False:
            return
    row = _row(result, folder)
    for play, said in zip(_plays(row, result, b""), result.tasks, strict=True):
        yield _replay(play, said, seeds)
    if anew:
        plays = row.runs(draw())
        for play, said in zip(plays, result.tasks, strict=True):
            yield _compare(play, said, len(plays))


def _row(result: ResultFile, folder: Path) -> Row:
    """Returns the entry of a result with its suite, track and code; an error if the code is missing or not the same."""
    suite = SUITES[result.suite]
    code = "" if result.entry.kind == "baseline" else find_code(result.entry, folder / SOURCES)
    return Row(suite, tracks_of(suite)[result.track], result.entry, code)


def _plays(row: Row, result: ResultFile, secret: bytes) -> list[EntryRun]:
    return row.runs(EditionSecrets(result.edition, secret))


def _checks_before_replay(result: ResultFile, folder: Path) -> Iterator[Finding]:
    """Makes all checks that need no replay; each relies on those before it."""
    yield _is_known("suite", result.suite, SUITES)
    suite = SUITES[result.suite]
    yield _same("suite's version", result.suite_version, suite.version)
    yield _is_known("track", result.track, tracks_of(suite))
    tasks = result.tasks
    yield _same("tasks", [task.task for task in tasks], [task.id for task in suite.tasks])
    yield _same("digests of tasks", [task.digest for task in tasks], [task.digest for task in suite.tasks])
    arrays = [task.digest_of_arrays() for task in tasks]
    yield _same("digests of arrays", [task.arrays_digest for task in tasks], arrays)
    yield _same("edition", result.edition.id, edition_of(result.edition.salt).id)
    for task, said in zip(suite.tasks, tasks, strict=True):
        drawn = [as_hex(seed) for seed in evaluation_seeds(suite, task, result.edition)]
        yield _same(f"seeds of {task.id}", list(said.seeds), drawn)
    yield from _on_record(result, folder)
    yield _confinement(result)
    yield _entry(result, folder)
    same = result.package["source_digest"] == source_digest()
    other = "another state of the code: numbers of other dynamics will differ"
    yield Finding("package", same or None, "the same code" if same else other)
    row = _row(result, folder)
    try:
        try_out(row)
    except (ValueError, TypeError, ArithmeticError) as error:
        yield Finding("settings", False, str(error))
    yield from _noise(result, row, folder)
    for play, said in zip(_plays(row, result, b""), tasks, strict=True):
        yield _replayed_rows(play, said)


def _is_known(what: str, name: str, known: Mapping[str, Any]) -> Finding:
    return Finding(what, name in known, "as required" if name in known else f"{name!r} is unknown")


def _same(what: str, found: Any, required: Any) -> Finding:
    if found == required:
        return Finding(what, True, "as required")
    if isinstance(found, list) and isinstance(required, list) and len(found) == len(required):
        found, required = next((f, r) for f, r in zip(found, required, strict=True) if f != r)
    return Finding(what, False, f"{found} is said; {required} is required")


def _on_record(result: ResultFile, folder: Path) -> Iterator[Finding]:
    records = Records(folder)
    try:
        lines = records.lines()
    except RecordError as error:
        yield Finding("record", False, str(error))
        return
    if not lines:
        yield Finding("record", None, "there is none here: seeds may have been searched before the edition")
        return
    known = records.has_edition(SUITES[result.suite], result.edition.salt)
    yield Finding("edition on record", known, result.edition.id)
    status = records.status(result.digest)
    withdrawn = f"withdrawn: {records.why_out(result.digest)}"
    detail = {"in": "taken in", "out": withdrawn, "unknown": "no such row was taken in"}[status]
    yield Finding("row on record", status == "in", detail)


def _confinement(result: ResultFile) -> Finding:
    """Checks that a submission has played in a sandbox and a baseline in none, and notes what the kernel lacked."""
    held = [task.confined for task in result.tasks]
    what = "confinement"
    if result.entry.kind == "baseline":
        none = all(parts is None for parts in held)
        return Finding(what, none, f"{'none' if none else held} is said of a baseline, which needs none")
    if None in held:
        return Finding(what, False, "a submission is said to have played without a process of its own")
    everywhere = in_all([parts for parts in held if parts is not None])
    if missing := [part for part in PARTS if part not in everywhere]:
        return Finding(what, None, f"the kernel did not close {', '.join(missing)} to it")
    return Finding(what, True, "all parts are said to have held")


def _entry(result: ResultFile, folder: Path) -> Finding:
    """Checks that a baseline is the installed one, and that a submission's code is the code that has played."""
    try:
        if result.entry.kind == "baseline":
            return _same("entry", result.entry, as_read(baseline_entry(result.entry.source)))
        find_code(result.entry, folder / SOURCES)
    except (OSError, ValueError, ImportError) as error:
        return Finding("entry", False, str(error))
    return Finding("entry", True, "its code is the code that has played")


def _replayed_rows(play: EntryRun, said: TaskResult) -> Finding:
    """Checks that as many rows were played alone as must be; which rows, follows from a secret."""
    required = sum(min(part.checked_rows, len(part.seeds) * play.agents) for part in play.split())
    rows = {(i, j) for i, j in said.replayed_rows if i < len(play.seeds) and j < play.agents}
    count = len(said.replayed_rows)
    return Finding(
        f"watched rows of {said.task}",
        len(rows) == count == required,
        f"{count} are said, {len(rows)} are rows of their own; {required} are required",
    )


def _noise(result: ResultFile, row: Row, folder: Path) -> Iterator[Finding]:
    """Checks that a result has noise where its wrappers add noise, from the edition's secret where that is known."""
    secret = Records(folder).secret(result.edition.id)
    for play, said in zip(_plays(row, result, secret or b""), result.tasks, strict=True):
        noisy = find_layer(play.stack(), "noise") is not None
        if noisy != (said.noise_entropy is not None):
            yield Finding("noise", False, f"{said.task}: the entry {'has' if noisy else 'has no'} noise")
        elif noisy and secret is not None:
            yield _same(f"noise of {said.task}", said.noise_entropy, as_hex(play.noise_entropy))
        elif noisy:
            yield Finding(
                "noise", None, f"{said.task}: the secret that it must follow from is not known here"
            )


def _replay(play: EntryRun, said: TaskResult, seeds: int | None) -> Finding:
    """Replays a sample of seeds, and compares number by number."""
    count = len(play.seeds)
    chosen = sorted(secrets.SystemRandom().sample(range(count), min(seeds or count, count)))
    noise = play.noise_entropy if said.noise_entropy is None else int(said.noise_entropy, 16)
    again = replace(play, seeds=tuple(play.seeds[i] for i in chosen), noise_entropy=noise)
    what = f"replay of {said.task}"
    try:
        wrong = _first_difference(_played(again), said, chosen)
    except Exception as error:
        # Whatever a submission raises in the replay, the row does not hold.
        return Finding(what, False, f"{type(error).__name__}: {error}")
    return Finding(what, not wrong, wrong or f"{len(chosen)} of {count} seeds give the same numbers")


def _played(play: EntryRun) -> TaskResult:
    return play.join([part.play() for part in play.split()])


def _first_difference(played: TaskResult, said: TaskResult, chosen: Sequence[int]) -> str:
    """Returns the first difference of a replay of the chosen seeds from a result; empty if there is none."""
    if played.rounds != list(said.rounds):
        return "checkpoints differ"
    if unknown := said.extra.keys() - played.extra.keys():
        return f"extra has {sorted(unknown)}, which does not come about"
    regrets = zip(said.rounds, played.regret, said.regret, strict=True)
    pairs = {f"regret by round {t}": (new, old) for t, new, old in regrets}
    pairs |= {name: (new, list(said.extra.get(name, ()))) for name, new in played.extra.items()}
    pairs |= {"messages": (played.messages, said.messages), "bytes": (played.bytes, said.bytes)}
    for name, (new, old) in pairs.items():
        for here, seed in enumerate(chosen):
            was = old[seed] if seed < len(old) else "missing"
            if new[here] != was:
                return f"{name}, seed {seed}: {was} is said; {new[here]} comes about"
    if len(played.claims) != len(said.claims):
        return f"{len(said.claims)} claims are made; {len(played.claims)} can be"
    for spent, claimed in zip(played.claims, said.claims, strict=True):
        if not _covers(claimed, spent):
            return f"claim is {dict(claimed)}; {spent} can be made"
    return ""


def _covers(claimed: Mapping[str, Any], spent: Mapping[str, Any]) -> bool:
    """Returns whether a claim about all seeds covers one about the replayed seeds, which may have spent less."""
    alike = ("adjacency", "composition", "delta", "trust", "noise")
    same = all(claimed.get(name) == spent[name] for name in alike)
    return same and weakness(claimed["epsilon"]) >= weakness(spent["epsilon"])


def _compare(play: EntryRun, said: TaskResult, tasks: int) -> Finding:
    """Compares regret with that under new random numbers, by a one-sided rank test."""
    fresh = np.array(_played(play).regret[-1])
    test = mannwhitneyu(np.array(said.regret[-1]), fresh, alternative="less", method="auto")
    return Finding(
        f"random numbers of {said.task}",
        bool(test.pvalue >= FALSE_ALARM / tasks),
        f"regret {np.median(said.regret[-1]):.4g} in the median, {np.median(fresh):.4g} with new random numbers "
        f"(p = {test.pvalue:.2g})",
    )
