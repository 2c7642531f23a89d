"""Verifies a result: its form, its digests, where its luck came from, and its numbers, by playing again.

Every replica follows from its own seed. So a sample of seeds, which nobody can foresee, is played again at a fraction
of the cost and must give the very same numbers; whoever changed those of one seed in n is found out with probability
k/n when k are played again, and always when all are.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from fedbandit_envs.leaderboard.board.child.confinement import PARTS
from fedbandit_envs.leaderboard.board.editions import (
    Opened,
    as_hex,
    draw,
    edition_of,
    evaluation_seeds,
)
from fedbandit_envs.leaderboard.board.engine import SOURCES, Row, try_out
from fedbandit_envs.leaderboard.board.entries import as_read, baseline_entry, found_again, in_all
from fedbandit_envs.leaderboard.board.plays import Play, Played, how_bad
from fedbandit_envs.leaderboard.board.records import RecordError, Records
from fedbandit_envs.leaderboard.board.result import Result, TaskResult
from fedbandit_envs.leaderboard.board.suites import SUITES
from fedbandit_envs.leaderboard.board.tracks import tracks_of
from fedbandit_envs.leaderboard.sweep.source import source_digest
from fedbandit_envs.wrapper import find_layer

FALSE_ALARM = 1e-3
"""Of the comparison with luck drawn anew, over all tasks of a result."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: What was looked at.
        holds: Whether it is as it must be; None where it could not be looked at, or is no more than worth knowing.
        detail: What was found.
    """

    what: str
    holds: bool | None
    detail: str


def verify(
    result: Result,
    folder: Path,
    seeds: int | None = 2,
    anew: bool = False,
) -> Iterator[Finding]:
    """Verifies a result; nothing is played where its words do not hold.

    Args:
        result: The result.
        folder: Where it lies, with the record and kept sources of submissions.
        seeds: How many seeds of each task are played again; None for all.
        anew: Whether it is also played with luck drawn now, which nobody can have searched for: regret that is lower
            in the result than there by more than chance refutes it.

    Yields:
        What was found, as it is found.
    """
    row = None
    for finding in _words(result, folder):
        if isinstance(finding, Row):
            row = finding
            continue
        yield finding
        if finding.holds is False:
            return
    if row is None:
        return
    opened = Opened(result.edition, secrets.token_bytes(32))
    for play, said in zip(row.plays(opened), result.tasks, strict=True):
        yield _replay(play, said, seeds)
    if anew:
        plays = row.plays(draw())
        for play, said in zip(plays, result.tasks, strict=True):
            yield _compare(play, said, len(plays))


def _words(result: Result, folder: Path) -> Iterator[Finding | Row]:
    """Checks all that can be checked without playing; the row comes among what was found."""
    if result.suite not in SUITES:
        yield Finding("suite", False, f"{result.suite!r} is none of {', '.join(SUITES)}")
        return
    suite = SUITES[result.suite]
    tracks = tracks_of(suite)
    yield _same("suite's version", result.suite_version, suite.version)
    if result.track not in tracks:
        yield Finding("track", False, f"{result.track!r} is none of {', '.join(tracks)}")
        return
    yield _same("tasks", [task.task for task in result.tasks], [task.id for task in suite.tasks])
    yield _same(
        "digests of tasks", [task.digest for task in result.tasks], [task.digest for task in suite.tasks]
    )
    yield _same(
        "digests of arrays",
        [task.arrays_digest for task in result.tasks],
        [task.digest_of_arrays() for task in result.tasks],
    )
    yield _same("edition", result.edition.id, edition_of(result.edition.salt).id)
    for task, said in zip(suite.tasks, result.tasks, strict=True):
        drawn = [as_hex(seed) for seed in evaluation_seeds(suite, task, result.edition)]
        yield _same(f"seeds of {task.id}", list(said.seeds), drawn)
    yield from _on_record(result, folder)
    yield _confinement(result)
    try:
        code = ""
        if result.entry.kind == "baseline":
            yield _same("entry", result.entry, as_read(baseline_entry(result.entry.source)))
        else:
            code = found_again(result.entry, folder / SOURCES)
            yield Finding("entry", True, "its code is the code that has played")
    except (OSError, ValueError, ImportError) as error:
        yield Finding("entry", False, str(error))
        return
    same_code = result.package["source_digest"] == source_digest()
    yield Finding(
        "package", True if same_code else None,
        "the same code" if same_code else "another state of the code: numbers of other dynamics will differ",
    )  # fmt: skip
    row = Row(suite, tracks[result.track], result.entry, code)
    try:
        try_out(row)
    except (ValueError, TypeError, ArithmeticError) as error:
        yield Finding("settings", False, str(error))
        return
    yield from _noise(result, row, folder)
    for play, said in zip(row.plays(Opened(result.edition, b"")), result.tasks, strict=True):
        yield _watched(play, said)
    yield row


def _same(what: str, found: Any, required: Any) -> Finding:
    if found == required:
        return Finding(what, True, "as required")
    if isinstance(found, list) and isinstance(required, list) and len(found) == len(required):
        found, required = next((f, r) for f, r in zip(found, required, strict=True) if f != r)
    return Finding(what, False, f"{found} is said; {required} is required")


def _on_record(result: Result, folder: Path) -> Iterator[Finding]:
    records = Records(folder)
    try:
        lines = records.lines()
    except RecordError as error:
        yield Finding("record", False, str(error))
        return
    if not lines:
        yield Finding(
            "record", None, "there is none here: nobody says that its luck was drawn before it was searched"
        )
        return
    yield Finding(
        "edition on record", records.has_edition(SUITES[result.suite], result.edition.salt),
        f"{result.edition.id}",
    )  # fmt: skip
    status = records.status(result.digest)
    detail = {
        "in": "taken in",
        "out": f"withdrawn: {records.why_out(result.digest)}",
        "unknown": "no such row was taken in",
    }
    yield Finding("row on record", status == "in", detail[status])


def _confinement(result: Result) -> Finding:
    """Looks whether the entry played where entries of its kind play, and what kept it there."""
    held = [task.confined for task in result.tasks]
    if result.entry.kind == "baseline":
        parent = all(parts is None for parts in held)
        return Finding(
            "confinement", parent, f"{'none' if parent else held} is said of a baseline, which needs none"
        )
    if None in held:
        return Finding(
            "confinement", False, "a submission is said to have played without a process of its own"
        )
    missing = [part for part in PARTS if part not in in_all([parts for parts in held if parts is not None])]
    return Finding(
        "confinement", None if missing else True,
        f"the kernel did not close {', '.join(missing)} to it" if missing else "all parts are said to have held",
    )  # fmt: skip


def _watched(play: Play, said: TaskResult) -> Finding:
    """Looks whether as many rows as must were played alone as well; which ones, follows from a secret."""
    required = sum(min(part.watched, len(part.seeds) * play.agents) for part in play.split())
    rows = {
        (replica, agent)
        for replica, agent in said.replayed_rows
        if replica < len(play.seeds) and agent < play.agents
    }
    holds = len(rows) == len(said.replayed_rows) == required
    return Finding(
        f"watched rows of {said.task}", holds,
        f"{len(said.replayed_rows)} are said, {len(rows)} are rows of their own; {required} are required",
    )  # fmt: skip


def _noise(result: Result, row: Row, folder: Path) -> Iterator[Finding]:
    """Checks that noise followed from the edition's secret, where that is known, and from nothing shared."""
    secret = Records(folder).secret(result.edition.id)
    opened = Opened(result.edition, secret or b"")
    for play, said in zip(row.plays(opened), result.tasks, strict=True):
        noisy = find_layer(play.stack(), "noise") is not None
        if noisy != (said.noise_entropy is not None):
            yield Finding("noise", False, f"{said.task}: the entry {'has' if noisy else 'has no'} noise")
        elif noisy and secret is not None:
            yield _same(f"noise of {said.task}", said.noise_entropy, as_hex(play.noise))
        elif noisy:
            yield Finding("noise", None, f"{said.task}: what it must have followed from is not known here")


def _replay(play: Play, said: TaskResult, seeds: int | None) -> Finding:
    """Plays seeds again, and compares number by number."""
    count = len(play.seeds)
    chosen = sorted(secrets.SystemRandom().sample(range(count), min(seeds or count, count)))
    noise = play.noise if said.noise_entropy is None else int(said.noise_entropy, 16)
    again = replace(play, seeds=tuple(play.seeds[i] for i in chosen), noise=noise)
    try:
        played = _played(again)
    except Exception as error:
        # Whatever a submission raises when it is played again, the row does not hold.
        return Finding(f"replay of {said.task}", False, f"{type(error).__name__}: {error}")
    wrong = _first_difference(played, said, chosen)
    return Finding(
        f"replay of {said.task}", not wrong, wrong or f"{len(chosen)} of {count} seeds give the same numbers"
    )


def _played(play: Play) -> Played:
    return play.join([part.play(lambda played: None) for part in play.split()])


def _first_difference(played: Played, said: TaskResult, chosen: Sequence[int]) -> str:
    """Says where what was played again differs from what was said; empty if nowhere."""
    if played.rounds != list(said.rounds):
        return "checkpoints differ"
    pairs = {
        **{
            f"regret by round {t}": (new, old)
            for t, new, old in zip(said.rounds, played.regret, said.regret, strict=True)
        },
        **{name: (new, said.extra.get(name, ())) for name, new in played.extra.items()},
        "messages": (played.messages, said.messages),
        "bytes": (played.bytes, said.bytes),
    }
    if unknown := said.extra.keys() - played.extra.keys():
        return f"extra has {sorted(unknown)}, which does not come about"
    for name, (new, old) in pairs.items():
        for here, seed in enumerate(chosen):
            if seed >= len(old) or new[here] != old[seed]:
                was = old[seed] if seed < len(old) else "missing"
                return f"{name}, seed {seed}: {was} is said; {new[here]} comes about"
    if len(played.claims) != len(said.claims):
        return f"{len(said.claims)} claims are made; {len(played.claims)} can be"
    for spent, claimed in zip(played.claims, said.claims, strict=True):
        if not _covers(claimed, spent):
            return f"claim is {dict(claimed)}; {spent} can be made"
    return ""


def _covers(claimed: Mapping[str, Any], spent: Mapping[str, Any]) -> bool:
    """Says whether a claim is one for all seeds, of which those that were played again may have spent less."""
    alike = ("adjacency", "composition", "delta", "trust", "noise")
    return all(claimed.get(name) == spent[name] for name in alike) and how_bad(claimed) >= how_bad(spent)


def _compare(play: Play, said: TaskResult, tasks: int) -> Finding:
    """Compares regret with that under luck drawn anew, one-sided, by ranks."""
    fresh = np.array(_played(play).regret[-1])
    test = mannwhitneyu(np.array(said.regret[-1]), fresh, alternative="less", method="auto")
    return Finding(
        f"luck of {said.task}",
        bool(test.pvalue >= FALSE_ALARM / tasks),
        f"regret {np.median(said.regret[-1]):.4g} in the median, {np.median(fresh):.4g} with luck drawn now "
        f"(p = {test.pvalue:.2g})",
    )
