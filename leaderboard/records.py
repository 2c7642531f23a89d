"""The record of a folder of results: editions opened, rows added, and rows withdrawn with the reason.

``record.jsonl`` is only appended to. Each line is sealed by a digest of itself and of the previous line's seal, so that
any later change shows; whoever keeps the latest seal can tell that the file was not rewritten as a whole. Secrets of
editions lie beside it, in files that only their owner can read.

Evaluation seeds follow from the suite and a salt, which is published with every row: entries of one edition have common
random numbers, and nobody knows the seeds before the edition is opened. Noise, and the choice of rows that are replayed
alone, follow from the edition's secret. The noise entropy of a row is published with the row, and reveals nothing about
other rows.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, Self

from fedbandit_envs.basics.files import write_all
from fedbandit_envs.leaderboard.locks import lock
from fedbandit_envs.leaderboard.published import newest_published, published_editions
from fedbandit_envs.leaderboard.result import Edition, Entry, ResultFile, canonical, digest_of
from fedbandit_envs.leaderboard.suites import Suite, Task

_BYTES = 16
_FIRST = "0" * 64
_FIELDS = {
    "edition": {"suite", "digest", "salt", "id", "secret_digest"},
    "in": {"file", "result", "suite", "track", "entry"},
    "out": {"result", "entry", "reason"},
}
"""Fields that each kind of line in the record must have.

Besides these a line has ``what`` (its kind), ``at`` (the time), ``before`` (the previous line's seal) and ``seal``.
"""


class RecordError(RuntimeError):
    """A record was changed by hand, or cannot do what is asked of it, such as withdraw a row that it does not have."""


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
        """Returns a new edition, whose salt and secret are drawn from the operating system's random generator."""
        return cls(Edition.of(secrets.token_hex(_BYTES)), secrets.token_bytes(32))

    def entropy(self, purpose: str, suite: Suite, track: str, entry: Entry, task: Task) -> int:
        """Returns a pseudo-random number of 128 bits for one purpose in one run: HMAC-SHA256 with the edition's secret.

        A run is one entry's episodes of one task on one track. The same run always gets the same number, so that it can
        be stopped and started again. Different runs and purposes get different numbers, and none reveals the secret.

        Args:
            purpose: ``noise`` for the privacy noise; ``watch`` for the random choice of rows (one agent in one replica)
                that are also played alone as a check.
            suite: The suite that is played.
            track: Name of the track.
            entry: The baseline or submission that plays.
            task: The task that it plays.
        """
        of = [purpose, suite.name, suite.version, asdict(self.edition), track, asdict(entry), task.digest]
        return int.from_bytes(hmac.digest(self.secret, canonical(of).encode(), "sha256")[:_BYTES])


def evaluation_seeds(suite: Suite, task: Task, edition: Edition) -> list[int]:
    """Returns the seeds, of 128 bits each, under which every entry plays a task in an edition."""
    named = (
        ["seed", suite.name, suite.version, edition.salt, task.id, number] for number in range(task.seeds)
    )
    digests = (hashlib.sha256(canonical(name).encode()).digest() for name in named)
    return [int.from_bytes(digest[:_BYTES]) for digest in digests]


def _is_valid(line: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether a line of the record has the fields of its kind, and withdraws only a row that was added before.

    Args:
        line: The line of the record, decoded.
        lines: All lines before it.
    """
    whole = line.keys() == {"what", "at", "before", "seal"} | _FIELDS[line["what"]]
    return whole and (line["what"] != "out" or any(one.get("result") == line["result"] for one in lines))


class Records:
    """The record of one folder of results.

    Example:
        >>> Records(Path("nowhere")).lines()
        []
    """

    def __init__(self, folder: Path) -> None:
        """Opens the record; its file is only created when the first line is appended.

        Args:
            folder: The folder of results.
        """
        self._file = folder / "record.jsonl"
        self._secrets = folder / ".secrets"

    def lines(self, what: str = "") -> list[dict[str, Any]]:
        """Returns the lines of the record, in the order in which they were appended.

        Args:
            what: Kind of the lines to return: ``edition`` (an edition was opened), ``in`` (a row was added) or ``out``
                (a row was withdrawn); empty for all lines.

        Raises:
            OSError: The file exists and cannot be read.
            RecordError: A line was changed, removed or inserted, or has a form that no command writes; the message
                names the first such line.
        """
        found: list[dict[str, Any]] = []
        before = _FIRST
        for number, text in enumerate(self._texts(), 1):
            try:
                line = json.loads(text)
                sealed = digest_of({name: value for name, value in line.items() if name != "seal"})
                intact = (line["before"], line["seal"]) == (before, sealed) and _is_valid(line, found)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                intact = False
            if not intact:
                raise RecordError(
                    f"{self._file}, line {number}: it was changed, or does not follow the line before"
                )
            before = line["seal"]
            found.append(line)
        return [line for line in found if what in ("", line["what"])]

    def _texts(self) -> list[bytes]:
        """Returns the lines of the file as they are, without the last one if it was not written to its end.

        Such a line, which a full disk or the end of a process may leave, has no newline and is no JSON: a part of the
        text of an object never is.
        """
        *whole, last = self._file.read_bytes().split(b"\n") if self._file.exists() else [b""]
        try:
            json.loads(last)
        except (ValueError, RecursionError):
            return whole
        return [*whole, last]

    def edition(self, suite: Suite, new: bool = False, published: bool = False) -> EditionSecrets:
        """Returns the suite's latest edition whose secret is in this folder; opens a new edition if there is none.

        An edition whose salt is published is returned only if it is asked for, since its seeds are known.

        Args:
            suite: The suite.
            new: Whether to open a new edition even if there is one.
            published: Whether to play the newest published edition, with a secret of this folder's own.

        Raises:
            OSError: The folder cannot be written to; no edition was opened.
            RecordError: The record was changed.
            ValueError: The published edition is asked for, and the suite has none in this version.
        """
        known = {edition.salt for edition in published_editions(suite)}
        salts = (
            [newest_published(suite).salt] if published else [s for s in self.salts(suite) if s not in known]
        )
        with self._locked() as append:
            for salt in reversed([] if new else salts):
                edition = Edition.of(salt)
                if (secret := self.secret(edition.id)) is not None:
                    return EditionSecrets(edition, secret)
            drawn = EditionSecrets.draw()
            if published:
                drawn = drawn._replace(edition=newest_published(suite))
            self._secrets.mkdir(mode=0o700, exist_ok=True)
            file = self._secrets / drawn.edition.id
            try:
                file.touch(mode=0o600, exist_ok=False)
                with FileIO(file, "a") as out:
                    write_all(out, drawn.secret)
                append(
                    what="edition", suite=suite.name, digest=suite.digest, salt=drawn.edition.salt,
                    id=drawn.edition.id, secret_digest=hashlib.sha256(drawn.secret).hexdigest(),
                )  # fmt: skip
            except BaseException:
                file.unlink(missing_ok=True)
                raise
            return drawn

    def secret(self, edition: str) -> bytes | None:
        """Returns the secret of the edition with this id, 32 bytes; None if this folder does not have it.

        A file that this user may not read, or whose digest is not that of the secret on record, does not count.

        Raises:
            RecordError: The record was changed.
        """
        known = {line["id"]: line["secret_digest"] for line in self.lines("edition")}
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            secret = (self._secrets / edition).read_bytes()
            if hashlib.sha256(secret).hexdigest() == known.get(edition):
                return secret
        return None

    def salts(self, suite: Suite) -> list[str]:
        """Returns the salts of the suite's editions, in the order in which this record has them."""
        return [line["salt"] for line in self.lines("edition") if line["digest"] == suite.digest]

    def take_in(self, file: Path, make: Callable[[], ResultFile]) -> None:
        """Writes a row's result file and records that the row was added.

        Nothing happens if the file exists and the record already has a line about its content, be it that the row was
        added or that it was withdrawn.

        Args:
            file: Where the result file is written, in this folder.
            make: Called without arguments to make the result, only if it is needed.
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
        """Records that a row is withdrawn; its result file is kept.

        Args:
            result: The row's result.
            reason: Why it is withdrawn; shown on the leaderboard's page.

        Raises:
            RecordError: The row is not in the record or was withdrawn before, or the reason is empty.
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
        """Returns for each row, by the digest of its result, the last line of the record about it.

        The line's ``what`` is ``in`` if the row was added, and ``out`` if it was withdrawn.

        Raises:
            RecordError: The record was changed.
        """
        return {line["result"]: line for line in self.lines() if "result" in line}

    def standing(self) -> list[ResultFile]:
        """Returns the results of all rows that were added and not withdrawn, in the order of their files' names.

        Raises:
            RecordError: The record was changed.
            ResultError: A JSON file of the folder is not a valid result.
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
        rows = {line["result"]: line for line in self.lines("in")}
        return [{**rows[line["result"]], **line} for line in self.lines("out")]

    def strays(self) -> list[str]:
        """Returns a message for each disagreement between the folder's result files and the record, sorted.

        A file disagrees if the record has no row for it, or if its content is not what was recorded; a row of the
        record disagrees if its file is missing.

        Raises:
            RecordError: The record was changed.
            ResultError: A JSON file of the folder is not a valid result.
        """
        files = {name: result.digest for name, result in self._results().items()}
        rows = {line["file"]: line["result"] for line in self.lines("in")}
        wrong = {name: "not as it was taken in" for name in files if files[name] != rows.get(name)}
        wrong |= dict.fromkeys(files.keys() - rows.keys(), "no row on record")
        wrong |= dict.fromkeys(rows.keys() - files.keys(), "the file is gone")
        return sorted(f"{name}: {why}" for name, why in wrong.items())

    def _results(self) -> dict[str, ResultFile]:
        return {file.name: ResultFile.load(file) for file in sorted(self._file.parent.glob("*.json"))}

    @contextmanager
    def _locked(self) -> Iterator[Callable[..., None]]:
        """Locks the record against appends by other processes, and yields a function that appends one line.

        The function takes the line's fields as keyword arguments, and adds the time and the seals. A last line that was
        not written to its end is removed first. If the new line cannot be written, nothing of it is left.
        """
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with FileIO(self._file, "a") as out:
            lock(out, wait=True)

            def append(**fields: str) -> None:
                lines = self.lines()
                before = lines[-1]["seal"] if lines else _FIRST
                line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "before": before, **fields}
                whole = b"".join(text + b"\n" for text in self._texts())
                # The file is longer than its whole lines if the last one is not, and shorter if that lacks its newline.
                kept = min(len(whole), os.fstat(out.fileno()).st_size)
                try:
                    out.truncate(kept)
                    write_all(
                        out, whole[kept:] + canonical({**line, "seal": digest_of(line)}).encode() + b"\n"
                    )
                    os.fsync(out.fileno())
                except BaseException:
                    out.truncate(kept)
                    raise

            yield append
