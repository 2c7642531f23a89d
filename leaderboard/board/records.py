"""The record of a folder of results: editions opened, rows added, and rows withdrawn with the reason.

``record.jsonl`` is only appended to. Each line is sealed by a digest of itself and of the previous line's seal, so that
any later change shows; whoever keeps the latest seal can tell that the file was not rewritten as a whole. Secrets of
editions lie beside it, in files that only their owner can read.

Evaluation seeds follow from the suite and a salt, which is published with every row: entries of one edition have common
random numbers, and nobody knows the seeds before the edition is opened. Noise, and the choice of rows that are replayed
alone, follow from the edition's secret. The noise entropy of a row is published with the row, and reveals nothing about
other rows.
"""

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from fedbandit_envs.leaderboard.board.result import Edition, Entry, ResultFile, canonical, digest_of
from fedbandit_envs.leaderboard.board.suites import Suite, Task

_BYTES = 16
_FIRST = "0" * 64
_FIELDS = {
    "edition": {"suite", "digest", "salt", "id", "secret_digest"},
    "in": {"file", "result", "suite", "track", "entry"},
    "out": {"result", "entry", "reason"},
}
"""Fields of each kind of line, besides kind, time and seals."""


class RecordError(RuntimeError):
    """A record was changed, or something is asked of it that is impossible."""


class EditionSecrets(NamedTuple):
    """An edition together with its secret.

    Attributes:
        edition: The edition, which is published.
        secret: 32 bytes that only the operators of the edition know.
    """

    edition: Edition
    secret: bytes

    @classmethod
    def draw(cls) -> Self:
        """Returns a new edition, drawn from the operating system's entropy."""
        return cls(Edition.of(secrets.token_hex(_BYTES)), secrets.token_bytes(32))

    def entropy(self, purpose: str, suite: Suite, track: str, entry: Entry, task: Task) -> int:
        """Returns 128 bits for one purpose of one entry's run of one task, by HMAC-SHA256 with the secret.

        The same run has the same bits, so that it can be stopped and started again; every other run has others, and
        none reveals the secret.

        Args:
            purpose: ``noise``, or ``watch`` for the choice of rows that are replayed alone.
            suite: The suite.
            track: The track's name.
            entry: The entry.
            task: The task.
        """
        of = [purpose, suite.name, suite.version, asdict(self.edition), track, asdict(entry), task.digest]
        return int.from_bytes(hmac.digest(self.secret, canonical(of).encode(), "sha256")[:_BYTES])


def evaluation_seeds(suite: Suite, task: Task, edition: Edition) -> list[int]:
    """Returns a task's evaluation seeds in an edition, 128 bits each."""
    named = (
        ["seed", suite.name, suite.version, edition.salt, task.id, number] for number in range(task.seeds)
    )
    digests = (hashlib.sha256(canonical(name).encode()).digest() for name in named)
    return [int.from_bytes(digest[:_BYTES]) for digest in digests]


def _is_valid(line: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether a line has the fields of its kind, and withdraws only a row that was added before."""
    whole = line.keys() == {"what", "at", "before", "seal"} | _FIELDS[line["what"]]
    return whole and (line["what"] != "out" or any(one.get("result") == line["result"] for one in lines))


class Records:
    """The record of one folder of results.

    Example:
        >>> Records(Path("nowhere")).lines()
        []
    """

    def __init__(self, folder: Path) -> None:
        """Opens the record; the file is made with its first line.

        Args:
            folder: The folder of results.
        """
        self._file = folder / "record.jsonl"
        self._secrets = folder / ".secrets"

    def lines(self) -> list[dict[str, Any]]:
        """Returns all lines, in order.

        Raises:
            RecordError: A line was changed, removed or inserted, or is none that a command writes; the first such
                line is named.
        """
        if not self._file.exists():
            return []
        found: list[dict[str, Any]] = []
        before = _FIRST
        for number, text in enumerate(self._file.read_text().splitlines(), 1):
            try:
                line = json.loads(text)
                sealed = digest_of({name: value for name, value in line.items() if name != "seal"})
                intact = (line["before"], line["seal"]) == (before, sealed) and _is_valid(line, found)
            except (ValueError, TypeError, KeyError, AttributeError):
                intact = False
            if not intact:
                raise RecordError(
                    f"{self._file}, line {number}: it was changed, or does not follow the line before"
                )
            before = line["seal"]
            found.append(line)
        return found

    def edition(self, suite: Suite, new: bool = False) -> EditionSecrets:
        """Returns the suite's latest edition whose secret is in this folder; opens one if there is none.

        Args:
            suite: The suite.
            new: Whether to open one in any case.
        """
        with self._locked() as append:
            for salt in reversed([] if new else self.salts(suite)):
                edition = Edition.of(salt)
                if (secret := self.secret(edition.id)) is not None:
                    return EditionSecrets(edition, secret)
            drawn = EditionSecrets.draw()
            self._secrets.mkdir(mode=0o700, exist_ok=True)
            file = os.open(self._secrets / drawn.edition.id, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as out:
                out.write(drawn.secret)
            append(
                what="edition", suite=suite.name, digest=suite.digest, salt=drawn.edition.salt, id=drawn.edition.id,
                secret_digest=hashlib.sha256(drawn.secret).hexdigest(),
            )  # fmt: skip
            return drawn

    def secret(self, edition: str) -> bytes | None:
        """Returns the secret of the edition of this id; None where this folder does not have it."""
        file = self._secrets / edition
        return file.read_bytes() if file.exists() else None

    def salts(self, suite: Suite) -> list[str]:
        """Returns the salts of the suite's editions, in the order in which they were opened here."""
        lines = self.lines()
        return [
            line["salt"] for line in lines if line["what"] == "edition" and line["digest"] == suite.digest
        ]

    def take_in(self, file: Path, make: Callable[[], ResultFile]) -> None:
        """Writes a row's file and records it, unless it is on record already or was withdrawn.

        Args:
            file: The file, in this folder.
            make: Makes the result.
        """
        with self._locked() as append:
            if file.exists() and ResultFile.load(file).digest in self.latest():
                return
            result = make()
            result.save(file)
            append(
                what="in", file=file.name, result=result.digest, suite=result.suite, track=result.track,
                entry=result.entry.name,
            )  # fmt: skip

    def take_out(self, result: ResultFile, reason: str) -> None:
        """Records that a row is withdrawn; its file stays.

        Raises:
            RecordError: It is not in the record, or withdrawn already, or the reason is empty.
        """
        if not reason.strip():
            raise RecordError("reason is empty; a withdrawal says why")
        digest = result.digest
        with self._locked() as append:
            line = self.latest().get(digest, {"what": ""})
            if line["what"] != "in":
                state = "withdrawn already" if line["what"] == "out" else "not in the record"
                raise RecordError(f"the row of {result.entry.name} is {state}")
            append(what="out", result=digest, entry=result.entry.name, reason=reason.strip())

    def latest(self) -> dict[str, dict[str, Any]]:
        """Returns the latest line about each row by the row's digest: ``what`` is ``in``, or ``out`` if withdrawn.

        Raises:
            RecordError: The record was changed.
        """
        return {line["result"]: line for line in self.lines() if "result" in line}

    def standing(self) -> list[ResultFile]:
        """Returns the rows that were added and not withdrawn, in the order of their files' names.

        Raises:
            RecordError: The record was changed.
            ResultError: A file is no result.
        """
        taken_in = {digest for digest, line in self.latest().items() if line["what"] == "in"}
        return [result for result in self._results().values() if result.digest in taken_in]

    def withdrawn(self) -> list[dict[str, str]]:
        """Returns the rows that were withdrawn, in the order of their withdrawals.

        Returns:
            ``suite``, ``track``, ``entry`` (its name) and ``file`` of each row, with the time (``at``, ISO 8601, UTC)
            and ``reason`` of its withdrawal.

        Raises:
            RecordError: The record was changed.
        """
        lines = self.lines()
        rows = {line["result"]: line for line in lines if line["what"] == "in"}
        return [{**rows[line["result"]], **line} for line in lines if line["what"] == "out"]

    def strays(self) -> list[str]:
        """Returns a sentence for each file that is no row on record, and each row whose file is missing or another.

        Raises:
            RecordError: The record was changed.
            ResultError: A file is no result.
        """
        files = {name: result.digest for name, result in self._results().items()}
        rows = {line["file"]: line["result"] for line in self.lines() if line["what"] == "in"}
        gone = [f"{name}: the file is gone" for name in rows.keys() - files.keys()]
        unknown = [f"{name}: no row on record" for name in files.keys() - rows.keys()]
        changed = [
            f"{name}: not as it was taken in"
            for name in files.keys() & rows.keys()
            if files[name] != rows[name]
        ]
        return sorted(gone + unknown + changed)

    def _results(self) -> dict[str, ResultFile]:
        return {file.name: ResultFile.load(file) for file in sorted(self._file.parent.glob("*.json"))}

    @contextmanager
    def _locked(self) -> Iterator[Callable[..., None]]:
        """Keeps other processes from appending, and yields a function that appends a line of the given fields."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a+", encoding="utf-8") as out:
            fcntl.flock(out, fcntl.LOCK_EX)

            def append(**fields: str) -> None:
                lines = self.lines()
                before = lines[-1]["seal"] if lines else _FIRST
                line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "before": before, **fields}
                out.write(canonical({**line, "seal": digest_of(line)}) + "\n")
                out.flush()
                os.fsync(out.fileno())

            yield append
