"""The record of a folder of results: who was taken in, and who was taken out and why. It is only ever appended to.

A line each, in ``record.jsonl``, sealed by the digest of itself and of the seal before, so that what is changed
afterwards shows; whoever keeps the latest seal knows that nobody has written it all anew. Secrets of editions lie
beside it, in files that only their owner can read.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fedbandit_envs.leaderboard.board.canonical import canonical, digest_of
from fedbandit_envs.leaderboard.board.editions import Opened, draw, edition_of
from fedbandit_envs.leaderboard.board.result import Result
from fedbandit_envs.leaderboard.board.suites import Suite

Status = Literal["in", "out", "unknown"]
_FIRST = "0" * 64
_SAID = {
    "edition": {"suite", "digest", "salt", "id", "secret_digest"},
    "in": {"file", "result", "suite", "track", "entry"},
    "out": {"result", "entry", "reason"},
}
"""What lines of each kind say, besides when, and the seals."""


class RecordError(RuntimeError):
    """A record is not as it was written, or something is asked of it that cannot be."""


class Withdrawn(NamedTuple):
    """A row that was taken out.

    Attributes:
        suite: Its suite.
        track: Its track.
        entry: Name of its entry.
        file: Its file, which stays.
        at: When it was taken out, ISO 8601, UTC.
        reason: Why.
    """

    suite: str
    track: str
    entry: str
    file: str
    at: str
    reason: str


def _may_follow(said: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> bool:
    """Says whether a line says what lines of its kind do; who is taken out must have been taken in before."""
    whole = said.keys() == {"what", "at", "before"} | _SAID[said["what"]]
    return whole and (said["what"] != "out" or any(line.get("result") == said["result"] for line in lines))


class Records:
    """The record of one folder."""

    def __init__(self, folder: Path) -> None:
        """Finds the record, or begins one once something is written.

        Args:
            folder: Where results lie.
        """
        self._file = folder / "record.jsonl"
        self._secrets = folder / ".secrets"

    def lines(self) -> list[dict[str, Any]]:
        """Returns all that was recorded, in order.

        Raises:
            RecordError: A line was changed, taken away or put in between, or says what none does; the first is named.
        """
        if not self._file.exists():
            return []
        found: list[dict[str, Any]] = []
        before = _FIRST
        for number, text in enumerate(self._file.read_text().splitlines(), 1):
            try:
                line = json.loads(text)
                said = {name: value for name, value in line.items() if name != "seal"}
                intact = (
                    line["before"] == before and line["seal"] == digest_of(said) and _may_follow(said, found)
                )
            except (ValueError, TypeError, KeyError, AttributeError):
                intact = False
            if not intact:
                raise RecordError(
                    f"{self._file}, line {number}: it is not as it was written after the line before"
                )
            before = line["seal"]
            found.append(line)
        return found

    def edition(self, suite: Suite, new: bool = False) -> Opened:
        """Returns the suite's latest edition, of which this folder has the secret; opens one if there is none.

        Args:
            suite: The suite.
            new: Whether to open one in any case.
        """
        with self._alone() as append:
            for line in reversed([] if new else self.lines()):
                if (
                    line["what"] == "edition"
                    and line["suite"] == suite.name
                    and line["digest"] == suite.digest
                ):
                    edition = edition_of(line["salt"])
                    secret = self.secret(edition.id)
                    if secret is not None:
                        return Opened(edition, secret)
            opened = draw()
            self._secrets.mkdir(mode=0o700, exist_ok=True)
            file = os.open(self._secrets / opened.edition.id, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as out:
                out.write(opened.secret)
            append(
                "edition",
                {"suite": suite.name, "digest": suite.digest, "salt": opened.edition.salt, "id": opened.edition.id,
                 "secret_digest": hashlib.sha256(opened.secret).hexdigest()},
            )  # fmt: skip
            return opened

    def secret(self, edition: str) -> bytes | None:
        """Returns the secret of an edition; None where it is not known here."""
        file = self._secrets / edition
        return file.read_bytes() if file.exists() else None

    def has_edition(self, suite: Suite, salt: str) -> bool:
        """Says whether an edition of a suite was opened here."""
        return any(
            line["what"] == "edition" and line["salt"] == salt and line["digest"] == suite.digest
            for line in self.lines()
        )

    def take_in(self, file: Path, make: Callable[[], Result]) -> None:
        """Writes a row's file and records it, unless it stands there already, or was withdrawn.

        Args:
            file: The file, in this folder.
            make: Makes the result.
        """
        with self._alone() as append:
            if file.exists() and self.status(Result.load(file).digest) != "unknown":
                return
            result = make()
            result.save(file)
            append(
                "in",
                {"file": file.name, "result": result.digest, "suite": result.suite, "track": result.track,
                 "entry": result.entry.name},
            )  # fmt: skip

    def take_out(self, result: Result, reason: str) -> None:
        """Records that a row is withdrawn; the file stays.

        Raises:
            RecordError: It is not in the record, or withdrawn already, or there is no reason.
        """
        if not reason.strip():
            raise RecordError("reason is empty; a withdrawal says why")
        digest = result.digest
        with self._alone() as append:
            if (status := self.status(digest)) != "in":
                standing = "withdrawn already" if status == "out" else "not in the record"
                raise RecordError(f"the row of {result.entry.name} is {standing}")
            append("out", {"result": digest, "entry": result.entry.name, "reason": reason.strip()})

    def status(self, digest: str) -> Status:
        """Says what has become of a row."""
        return self._statuses().get(digest, "unknown")

    def _statuses(self) -> dict[str, Status]:
        """Returns what has become of all rows, by digest."""
        return {line["result"]: line["what"] for line in self.lines() if "result" in line}

    def why_out(self, digest: str) -> str:
        """Returns why a row was withdrawn; empty if it was not."""
        reasons = [
            line["reason"] for line in self.lines() if line["what"] == "out" and line["result"] == digest
        ]
        return reasons[-1] if reasons and self.status(digest) == "out" else ""

    def standing(self) -> list[Result]:
        """Returns the rows of the folder that were taken in and not out, in the order of their files' names.

        Raises:
            RecordError: The record was changed.
            ResultError: A file is no result.
        """
        results = [Result.load(file) for file in sorted(self._file.parent.glob("*.json"))]
        statuses = self._statuses()
        return [result for result in results if statuses.get(result.digest) == "in"]

    def withdrawn(self) -> list[Withdrawn]:
        """Returns the rows that were taken out, in the order in which they were.

        Raises:
            RecordError: The record was changed.
        """
        lines = self.lines()
        rows = {line["result"]: line for line in lines if line["what"] == "in"}
        found = []
        for line in lines:
            if line["what"] == "out":
                row = rows[line["result"]]
                found.append(
                    Withdrawn(
                        row["suite"], row["track"], row["entry"], row["file"], line["at"], line["reason"]
                    )
                )
        return found

    def strays(self) -> list[str]:
        """Says of files that are no row on record, and of rows on record whose file is gone or another, which they are.

        Raises:
            RecordError: The record was changed.
            ResultError: A file is no result.
        """
        files = {file.name: Result.load(file).digest for file in sorted(self._file.parent.glob("*.json"))}
        rows = {line["file"]: line["result"] for line in self.lines() if line["what"] == "in"}
        return [
            f"{name}: " + ("no row on record" if name not in rows else "the file is gone" if name not in files
                           else "not as it was taken in")
            for name in sorted(files.keys() | rows.keys())
            if files.get(name) != rows.get(name)
        ]  # fmt: skip

    @contextmanager
    def _alone(self) -> Iterator[Any]:
        """Keeps others from appending meanwhile, and hands out what appends a line."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a+", encoding="utf-8") as out:
            fcntl.flock(out, fcntl.LOCK_EX)

            def append(what: str, said: Mapping[str, Any]) -> None:
                lines = self.lines()
                before = lines[-1]["seal"] if lines else _FIRST
                at = datetime.now(UTC).isoformat(timespec="seconds")
                line = {"what": what, "at": at, "before": before, **said}
                out.write(canonical({**line, "seal": digest_of(line)}) + "\n")
                out.flush()
                os.fsync(out.fileno())

            yield append
