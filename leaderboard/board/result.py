"""What is kept of an entry that has played a suite: one JSON file, checked against ``result.schema.json``.

Numbers in it are Python's, written so that they come back bit for bit. Infinity is said in words and what is not known
is null: JSON knows neither.
"""

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

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.board.canonical import digest_of

SCHEMA = 1
"""Version of the form of files."""

# More than any count has, and less than numbers of NumPy take.
_MOST_DIGITS = 18

ARRAYS = ("rounds", "regret", "extra", "messages", "bytes", "seeds")
"""What :attr:`TaskResult.arrays_digest` is taken of."""


class ResultError(ValueError):
    """A file is no result: the message says where it is wrong."""


@dataclass(frozen=True)
class TaskResult:
    """What an entry did in one task.

    Attributes:
        task: Id of the task.
        digest: Of all that determines the task.
        rounds: Checkpoints.
        regret: Cumulative regret, the mean over agents, ``[checkpoint][seed]``.
        extra: What the problem adds up to besides, the mean over agents, a number a seed by name.
        messages: Messages of the episode, the mean over agents, a number a seed.
        bytes: The same in bytes.
        claims: What is claimed of what has left agents, as :meth:`~fedbandit_envs.claim.Claim.as_json` says it, by
            adjacency and composition, for the agent of all seeds that has spent most.
        audit: What an attack on the mechanism showed; None where nothing was attacked.
        seeds: Evaluation seeds, 32 hexadecimal digits each.
        noise_entropy: What the noise followed from, 32 hexadecimal digits, secret until the run was over; None where
            there was no noise.
        replayed_rows: ``[replica, agent]`` of each row that was played alone as well, and had to agree.
        confined: What the kernel kept a submission's processes from, all of them (:mod:`.child.confinement`); None for
            a baseline, which plays in the parent.
        cpu_seconds: What playing took, processes of a submission included.
        arrays_digest: Of :data:`ARRAYS`; see :meth:`digest_of_arrays`.
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
        """Returns the digest of what is in :data:`ARRAYS`."""
        return digest_of({name: getattr(self, name) for name in ARRAYS})

    @property
    def regret_array(self) -> Array:
        """The regret, float64 ``(checkpoints, seeds)``."""
        return np.array(self.regret, np.float64)


@dataclass(frozen=True)
class Entry:
    """What has played.

    Attributes:
        name: Its name in rankings.
        kind: Whether it is one of this package's, or was submitted.
        source: Baseline's name, or the submission's file and class or entry point.
        source_digest: Of its source, SHA-256.
        settings: ``policy``, ``channel``, ``privatizer``: arguments besides what it has by default.
    """

    name: str
    kind: Literal["baseline", "submission"]
    source: str
    source_digest: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Edition:
    """A time at which a suite was run: who took part has met the same luck.

    Attributes:
        id: Follows from the salt.
        salt: What evaluation seeds follow from, besides the suite; 32 hexadecimal digits, drawn when it was opened.
    """

    id: str
    salt: str


@dataclass(frozen=True)
class Result:
    """An entry's row of a suite on one track.

    Attributes:
        suite: Name.
        suite_version: Version.
        edition: The edition.
        entry: What has played.
        track: Name of the track.
        tasks: One a task of the suite, in its order.
        command: What was typed.
        package: ``version``, ``commit`` (null if not known), ``source_digest`` and ``lock``: versions of all that is
            imported, by name.
        machine: System, processor and Python.
        made: When it was over, ISO 8601, UTC.
        schema: Version of the form.
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

    def as_json(self) -> dict[str, Any]:
        """Returns the attributes by name, checked.

        Raises:
            ResultError: Something in it is not as the schema wants it.
        """
        data: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        check(data)
        return data

    @property
    def digest(self) -> str:
        """SHA-256 of all of it, as records have it."""
        return digest_of(asdict(self))

    def save(self, path: Path) -> None:
        """Writes the file, at once and whole.

        Raises:
            ResultError: Something in it is not as the schema wants it.
        """
        text = json.dumps(self.as_json(), separators=(",", ":"))
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(text + "\n")
        partial.replace(path)

    @classmethod
    def of(cls, data: Any) -> Self:
        """Returns the result of JSON that was read.

        Raises:
            ResultError: It is not as the schema wants it; the message says where.
        """
        check(data)
        return cls(
            **{
                **data,
                "edition": Edition(**data["edition"]),
                "entry": Entry(**data["entry"]),
                "tasks": [TaskResult(**task) for task in data["tasks"]],
            }
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads a file.

        Raises:
            OSError: It cannot be read.
            ResultError: It is no JSON, or not as the schema wants it.
        """
        try:
            data = json.loads(
                path.read_bytes(), parse_constant=_refuse, parse_float=_finite, parse_int=_integer
            )
        except (ValueError, RecursionError) as error:
            raise ResultError(f"{path} is no JSON: {error}") from error
        try:
            return cls.of(data)
        except ResultError as error:
            raise ResultError(f"{path}: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _finite(text: str) -> float:
    """Reads a number; what is larger than any would be read as infinity."""
    number = float(text)
    if not isfinite(number):
        _refuse(text)
    return number


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        _refuse(text)
    return int(text)


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    text = files("fedbandit_envs.leaderboard.board").joinpath("result.schema.json").read_text()
    return Draft202012Validator(json.loads(text))


def check(data: Any) -> None:
    """Checks JSON against the schema, and that its arrays fit each other.

    Raises:
        ResultError: Names the place, what is there and what is required.
    """
    if errors := sorted(
        _validator().iter_errors(data), key=lambda error: list(map(str, error.absolute_path))
    ):
        raise ResultError(f"{errors[0].json_path} is wrong: {errors[0].message[:300]}")
    for number, task in enumerate(data["tasks"]):
        checkpoints, seeds = len(task["rounds"]), len(task["seeds"])
        lengths = {
            "regret": (len(task["regret"]), checkpoints),
            **{f"regret[{i}]": (len(row), seeds) for i, row in enumerate(task["regret"])},
            **{f"extra.{name}": (len(values), seeds) for name, values in task["extra"].items()},
            "messages": (len(task["messages"]), seeds),
            "bytes": (len(task["bytes"]), seeds),
        }
        for name, (length, required) in lengths.items():
            if length != required:
                raise ResultError(f"$.tasks[{number}].{name} has {length} entries; {required} are required")
