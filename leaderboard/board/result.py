"""The result file of an entry that has played a suite: JSON, checked against ``result.schema.json``.

Numbers are written as Python writes them, so that they are restored bit for bit. An infinite epsilon is the text
``"infinity"`` and an unknown one null, since JSON has neither infinity nor NaN.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

import numpy as np

from fedbandit_envs.basics.arrays import Array

SCHEMA = 1
"""Version of the schema."""

# Longer integers are refused: no count has as many digits, and NumPy cannot hold them.
_MOST_DIGITS = 18

Group = tuple[str, int, str]
"""Suite, its version and the edition's id: results of one group had common random numbers."""

ARRAYS = ("rounds", "regret", "extra", "messages", "bytes", "seeds")
"""Attributes of :class:`TaskResult` that its ``arrays_digest`` covers."""


def canonical(value: Any) -> str:
    """Returns JSON of which digests are taken, so that they do not depend on what wrote it.

    Keys are sorted and there are no blanks; numbers are as Python writes them, which restores them bit for bit.

    Raises:
        ValueError: A number is not finite: JSON has no infinity.
        TypeError: JSON has no form for the value.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(value: Any) -> str:
    """Returns the SHA-256 of :func:`canonical`, in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


class ResultError(ValueError):
    """A file that is no result; the message says where it is wrong."""


@dataclass(frozen=True)
class TaskResult:
    """The measurements of an entry in one task.

    Attributes:
        task: Id of the task.
        digest: Digest of all that determines the task.
        rounds: Checkpoints.
        regret: Cumulative regret, the mean over agents, ``[checkpoint][seed]``.
        extra: Other totals of the problem, the mean over agents: a number a seed, by name.
        messages: Messages that an agent sends in the episode, the mean over agents, a number a seed.
        bytes: The same in bytes.
        claims: Claims about all releases, in the form of :meth:`~fedbandit_envs.core.claim.Claim.as_json`, by adjacency
            and composition, for the agent of all seeds that has spent most.
        audit: Outcome of an attack on the privatizer; None where nothing was attacked.
        seeds: Evaluation seeds, 32 hexadecimal digits each.
        noise_entropy: Entropy of the noise, 32 hexadecimal digits, secret until the run was over; None without noise.
        replayed_rows: ``[replica, agent]`` of each row that was also played alone, with the same actions.
        confined: Parts of confinement that the kernel enforced on every process of a submission
            (:mod:`fedbandit_envs.leaderboard.sandbox.confinement`); None for a baseline, which needs no such process.
        cpu_seconds: CPU time of playing, processes of a submission included.
        arrays_digest: Digest of :data:`ARRAYS`; see :meth:`digest_of_arrays`.
    """

    task: str
    digest: str
    rounds: Sequence[int]
    regret: Sequence[Sequence[float]]
    extra: Mapping[str, Sequence[float]]
    messages: Sequence[float]
    bytes: Sequence[float]
    claims: Sequence[Mapping[str, Any]]
    audit: Mapping[str, Any] | None
    seeds: Sequence[str]
    noise_entropy: str | None
    replayed_rows: Sequence[Sequence[int]]
    confined: Sequence[str] | None
    cpu_seconds: float
    arrays_digest: str = ""

    def digest_of_arrays(self) -> str:
        """Returns the digest of the attributes in :data:`ARRAYS`."""
        return digest_of({name: getattr(self, name) for name in ARRAYS})

    @property
    def regret_array(self) -> Array:
        """The regret, float64 ``(checkpoints, seeds)``."""
        return np.array(self.regret, np.float64)


@dataclass(frozen=True)
class Entry:
    """A baseline or a submitted policy, with its settings.

    Attributes:
        name: Its name in rankings.
        kind: Whether it is a baseline of this package or a submission.
        source: A baseline's name, or a submission's file and class or entry point.
        source_digest: SHA-256 of its source.
        settings: Arguments in place of defaults, by part: ``policy``, ``channel``, ``privatizer``.
    """

    name: str
    kind: Literal["baseline", "submission"]
    source: str
    source_digest: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Edition:
    """One occasion on which a suite is run; all entries of it have common random numbers.

    Attributes:
        id: 12 hexadecimal digits that follow from the salt.
        salt: 32 hexadecimal digits, drawn when the edition was opened; evaluation seeds follow from them and the suite.
    """

    id: str
    salt: str

    @classmethod
    def of(cls, salt: str) -> Self:
        """Returns the edition of a salt."""
        return cls(hashlib.sha256(f"edition {salt}".encode()).hexdigest()[:12], salt)


@dataclass(frozen=True)
class ResultFile:
    """One entry's result of a suite on one track, as a file has it.

    Attributes:
        suite: Name of the suite.
        suite_version: Version of the suite.
        edition: The edition.
        entry: The entry.
        track: Name of the track.
        tasks: Results of the suite's tasks, in their order.
        command: The command line that makes this row.
        package: ``version``, ``commit`` (null if unknown), ``source_digest`` and ``lock``: versions of all
            dependencies, by name.
        machine: System, processor and Python.
        made: When it was completed, ISO 8601, UTC.
        schema: Version of the schema.
    """

    suite: str
    suite_version: int
    edition: Edition
    entry: Entry
    track: str
    tasks: Sequence[TaskResult]
    command: Sequence[str]
    package: Mapping[str, Any]
    machine: Mapping[str, Any]
    made: str
    schema: int = SCHEMA

    @property
    def group(self) -> Group:
        """The group within which the result may be compared."""
        return self.suite, self.suite_version, self.edition.id

    @property
    def run_tasks(self) -> Array:
        """Number of the task of each run, int64 ``(runs,)``."""
        return np.repeat(np.arange(len(self.tasks)), [len(task.seeds) for task in self.tasks])

    @property
    def last_regret(self) -> Array:
        """Regret per agent at the horizon, float64 ``(runs,)``, task by task."""
        return np.concatenate([task.regret_array[-1] for task in self.tasks])

    def as_json(self) -> dict[str, Any]:
        """Returns the attributes by name, checked.

        Raises:
            ResultError: An attribute is not as the schema requires.
        """
        data: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        _check(data)
        return data

    @property
    def digest(self) -> str:
        """SHA-256 of all of it, by which records refer to it."""
        return digest_of(asdict(self))

    def save(self, path: Path) -> None:
        """Writes the file atomically.

        Raises:
            ResultError: An attribute is not as the schema requires.
        """
        text = json.dumps(self.as_json(), separators=(",", ":"))
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(text + "\n")
        partial.replace(path)

    @classmethod
    def of(cls, data: Any) -> Self:
        """Returns the result that decoded JSON (nested dictionaries and lists) describes.

        Raises:
            ResultError: The data does not follow the schema; the message says where.
        """
        _check(data)
        nested = {
            "edition": Edition(**data["edition"]),
            "entry": Entry(**data["entry"]),
            "tasks": [TaskResult(**task) for task in data["tasks"]],
        }
        return cls(**{**data, **nested})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads a file.

        Raises:
            OSError: It cannot be read.
            ResultError: It is no JSON, or not as the schema requires.
        """
        text = path.read_bytes()
        try:
            return cls.of(json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_integer))
        except ResultError as error:
            raise ResultError(f"{path}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise ResultError(f"{path} is no JSON: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _finite(text: str) -> float:
    """Reads a number, and refuses one so large that it would become infinite."""
    return number if isfinite(number := float(text)) else _refuse(text)


def _integer(text: str) -> int:
    return int(text) if len(text) <= _MOST_DIGITS else _refuse(text)


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    text = files("fedbandit_envs.leaderboard.board").joinpath("result.schema.json").read_text()
    return Draft202012Validator(json.loads(text))


def _check(data: Any) -> None:
    """Checks JSON against the schema, and the lengths of its arrays against each other.

    Raises:
        ResultError: Names the place, what is there and what is required.
    """
    errors = _validator().iter_errors(data)
    first = min(errors, key=lambda error: list(map(str, error.absolute_path)), default=None)
    if first is not None:
        raise ResultError(f"{first.json_path} is wrong: {first.message[:300]}")
    for number, task in enumerate(data["tasks"]):
        seeds = len(task["seeds"])
        lengths = [("regret", task["regret"], len(task["rounds"]))]
        lengths += [(f"regret[{i}]", row, seeds) for i, row in enumerate(task["regret"])]
        lengths += [(f"extra.{name}", values, seeds) for name, values in task["extra"].items()]
        lengths += [(name, task[name], seeds) for name in ("messages", "bytes")]
        for name, values, required in lengths:
            if len(values) != required:
                raise ResultError(
                    f"$.tasks[{number}].{name} has {len(values)} entries; {required} are required"
                )
