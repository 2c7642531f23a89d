"""The result file of an entry that has played a suite: JSON, checked against ``result.schema.json``.

Numbers are written as Python writes them, so that they are restored bit for bit. An infinite epsilon is the text
``"infinity"`` and an unknown one null, since JSON has neither infinity nor NaN.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.files import write_whole

SCHEMA = 2
"""Version of the schema."""

# Integers in a file with more digits are refused: no count is so large, and NumPy's 64 bits cannot hold them.
_MOST_DIGITS = 18

Group = tuple[str, int, str]
"""Name of a suite, its version, and the id of an edition.

Results with equal groups were played under the same seeds, so that they may be compared.
"""

ARRAYS = ("rounds", "regret", "row_regret", "extra", "messages", "bytes", "seeds")
"""Names of the attributes of :class:`TaskResult` whose content its ``arrays_digest`` protects against changes."""


def canonical(value: Any) -> str:
    """Returns a value as JSON in a unique form, so that equal values have equal digests.

    Keys are sorted and there are no blanks; numbers are written by Python, which restores them bit for bit.

    Raises:
        ValueError: A number is not finite: JSON has no infinity.
        TypeError: The value contains an object that JSON cannot represent.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(value: Any) -> str:
    """Returns the SHA-256 digest of a value's unique JSON form (:func:`canonical`), in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


class ResultError(ValueError):
    """A file that is not a valid result, or results that cannot be ranked together; the message says why."""


@dataclass(frozen=True)
class TaskResult:
    """The measurements of an entry on one task.

    Attributes:
        task: Id of the task.
        digest: Digest of everything that determines the task.
        rounds: Checkpoints: the rounds after which regret was recorded.
        regret: Cumulative regret, the mean over agents, ``[checkpoint][seed]``.
        row_regret: Cumulative regret at the last round, ``[seed][agent]``.
        extra: Other measures of the problem by name, each the mean over agents, one number for each seed.
        messages: Number of messages that an agent sent in the episode, the mean over agents, one number for each seed.
        bytes: Number of bytes that an agent sent in the episode, the mean over agents, one number for each seed.
        claims: Privacy claims for all releases of the episode, one for each adjacency and composition, in the form of
            :meth:`~fedbandit_envs.core.privacy.Claim.as_json`; each holds for all agents under all seeds.
        audit: Outcome of the attack on the privatizer; None if there was no attack.
        seeds: Evaluation seeds, 32 hexadecimal digits each.
        noise_entropy: Number from which the privacy noise was generated, 32 hexadecimal digits; it was secret until the
            run was over. None without noise.
        replayed_rows: ``[replica, agent]`` for each row (one agent in one replica) that was also played alone, which
            had to give the same actions.
        confined: Parts of confinement that the kernel enforced on every process of a submission
            (:mod:`fedbandit_envs.leaderboard.sandbox.confinement`); None for a baseline, which needs no such process.
        cpu_seconds: CPU time that playing took, including that of a submission's processes.
        arrays_digest: Digest of the attributes named in :data:`ARRAYS`; see :meth:`digest_of_arrays`.
    """

    task: str
    digest: str
    rounds: Sequence[int]
    regret: Sequence[Sequence[float]]
    row_regret: Sequence[Sequence[float]]
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
        """Returns the SHA-256 digest of the result's numbers: the attributes whose names are in :data:`ARRAYS`."""
        return digest_of({name: getattr(self, name) for name in ARRAYS})

    @property
    def regret_array(self) -> Array:
        """Cumulative regret, the mean over agents, as a float64 array ``(checkpoints, seeds)``."""
        return np.array(self.regret, np.float64)


@dataclass(frozen=True)
class Entry:
    """A baseline or a submitted policy, with its settings.

    Attributes:
        name: The entry's name in rankings.
        kind: Whether it is a baseline of this package or a submission.
        source: For a baseline its name; for a submission ``"file.py:Class"`` or an entry point ``"module:Class"``.
        source_digest: SHA-256 of a submission's code, or of a baseline's definition (policy, wrappers and arguments).
        settings: Keyword arguments that replace defaults, by what they belong to: ``policy``, ``channel``,
            ``privatizer``.
    """

    name: str
    kind: Literal["baseline", "submission"]
    source: str
    source_digest: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Edition:
    """One occasion on which a suite is played; all entries of an edition are played under the same seeds.

    Attributes:
        id: 12 hexadecimal digits that follow from the salt.
        salt: 32 hexadecimal digits, drawn when the edition was opened; evaluation seeds follow from them and the suite.
    """

    id: str
    salt: str

    @classmethod
    def of(cls, salt: str) -> Self:
        """Returns the edition with a given salt; its id is the beginning of the salt's digest."""
        return cls(hashlib.sha256(f"edition {salt}".encode()).hexdigest()[:12], salt)


@dataclass(frozen=True)
class ResultFile:
    """The result of one entry on all tasks of a suite, on one track; the content of a result file.

    Attributes:
        suite: Name of the suite.
        suite_version: Version of the suite.
        edition: The edition in which it was played.
        entry: The baseline or submission that played.
        track: Name of the track.
        tasks: Results of the tasks, in the suite's order.
        command: Words of the command line that makes this result.
        package: ``version``, ``commit`` (null if unknown), ``source_digest`` and ``lock``: versions of all
            dependencies, by name.
        machine: Operating system, processor, number of processors and version of Python.
        made: Time at which the result was completed, ISO 8601, UTC.
        schema: Version of the file's JSON schema.
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
        """Suite, version and edition: only results in which these are equal may be compared."""
        return self.suite, self.suite_version, self.edition.id

    @property
    def run_tasks(self) -> Array:
        """For each run (one task under one seed) the index of its task in the suite, int64 ``(runs,)``."""
        return np.repeat(np.arange(len(self.tasks)), [len(task.seeds) for task in self.tasks])

    @property
    def last_regret(self) -> Array:
        """Cumulative regret per agent at the horizon of each run (a task under a seed), float64 ``(runs,)``."""
        return np.concatenate([task.regret_array[-1] for task in self.tasks])

    def as_json(self) -> dict[str, Any]:
        """Returns the attributes by name as JSON data, after a check against the schema.

        Raises:
            ResultError: An attribute is not as the schema requires.
        """
        data: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        _check(data)
        return data

    @property
    def digest(self) -> str:
        """SHA-256 digest of the whole result, by which the record of the folder identifies it."""
        # `asdict` would copy every number, which takes longer than the digest.
        parts = {"edition": vars(self.edition), "entry": vars(self.entry), "tasks": [*map(vars, self.tasks)]}
        return digest_of({**vars(self), **parts})

    def save(self, path: Path) -> None:
        """Writes the result to a file, atomically: the file never exists with half of its content.

        Raises:
            OSError: The file cannot be written; it is as it was before.
            ResultError: An attribute is not as the schema requires.
        """
        text = json.dumps(self.as_json(), separators=(",", ":"))
        write_whole(path, f"{text}\n".encode())

    @classmethod
    def of(cls, data: Any) -> Self:
        """Returns the result that decoded JSON (nested dictionaries and lists) describes.

        Raises:
            ResultError: The data does not follow the schema; the message says where.
        """
        _check(data)
        edition, entry = Edition(**data["edition"]), Entry(**data["entry"])
        tasks = [TaskResult(**task) for task in data["tasks"]]
        return cls(**{**data, "edition": edition, "entry": entry, "tasks": tasks})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Returns the result that a file contains.

        Raises:
            OSError: The file cannot be read.
            ResultError: The file is not JSON, or its content does not follow the schema.
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
    """Returns the number that a text represents; raises ValueError if it is so large that it would become infinite."""
    return number if isfinite(number := float(text)) else _refuse(text)


def _integer(text: str) -> int:
    return int(text) if len(text) <= _MOST_DIGITS else _refuse(text)


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    text = files("fedbandit_envs.leaderboard").joinpath("result.schema.json").read_text()
    usual = Draft202012Validator.VALIDATORS["items"]

    # Numbers make up most of a result, and the usual check of a number takes a hundred times as long as this one.
    def items(here: Any, each: Any, values: Any, schema: Any) -> Any:
        numbers = each == {"type": "number"} and isinstance(values, list)
        return () if numbers and {*map(type, values)} <= {int, float} else usual(here, each, values, schema)

    return extend(Draft202012Validator, {"items": items})(json.loads(text))


def _check(data: Any) -> None:
    """Checks decoded JSON against the schema of results, and the lengths of its arrays against each other.

    Raises:
        ResultError: The data is wrong; the message names the place, what was found and what is required.
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
        lengths += [(name, task[name], seeds) for name in ("row_regret", "messages", "bytes")]
        lengths += [
            (f"row_regret[{i}]", row, len(task["row_regret"][0])) for i, row in enumerate(task["row_regret"])
        ]
        for name, values, required in lengths:
            if len(values) != required:
                raise ResultError(
                    f"$.tasks[{number}].{name} has {len(values)} entries; {required} are required"
                )
