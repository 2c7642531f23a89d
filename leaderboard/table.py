"""Results as data: a table with a line for each run (one task under one seed), and a file with what was run.

A folder of results has ``results.csv.gz`` (:class:`Line`) and ``entries.json`` (:class:`.suites.Edition` and
:class:`Entry`). Numbers are written as Python writes them, and lines are sorted: equal results are equal bytes.
"""

import csv
import gzip
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from io import StringIO
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from fedbandit_envs.experiments.store import write_whole
from fedbandit_envs.leaderboard.suites import SUITES, BoardError, Edition, Settings

RESULTS, ENTRIES, SOURCES = "results.csv.gz", "entries.json", "sources"
"""Names of the table and of the file of entries in a folder of results, and of the folder of entries' files."""

FEWEST_SEEDS = 20
"""Fewest seeds of a task under which a row is compared with others, if its edition has more."""

_DAMAGED = (gzip.BadGzipFile, zlib.error, csv.Error)
_NAMES = 6  # columns of a line that are no numbers


class Row(NamedTuple):
    """What identifies a row of the leaderboard.

    Attributes:
        suite: Name of the suite.
        edition: Id of the edition.
        track: Name of the track.
        entry: Name of the entry.
    """

    suite: str
    edition: str
    track: str
    entry: str


class Line(NamedTuple):
    """The measures of one run; all are means over agents.

    Attributes:
        suite: Name of the suite.
        edition: Id of the edition.
        entry: Name of the entry.
        track: Name of the track.
        task: Id of the task.
        seed: The seed, 32 hexadecimal digits.
        regret: Cumulative regret at the end.
        half: Cumulative regret after half of the rounds, rounded down; None where it was not kept.
        messages: Number of messages that an agent has sent.
        bytes: Number of bytes that an agent has sent.
        epsilon: Claimed privacy loss of all releases of the task's runs: 0 if nothing is released, infinite if data are
            released without noise, NaN if it is unknown.
        delta: The delta of that claim.
    """

    suite: str
    edition: str
    entry: str
    track: str
    task: str
    seed: str
    regret: float
    half: float | None
    messages: float
    bytes: float
    epsilon: float
    delta: float

    @property
    def row(self) -> Row:
        """The row that the run belongs to."""
        return Row(self.suite, self.edition, self.track, self.entry)


@dataclass(frozen=True)
class Entry:
    """An entry on a track of a suite: everything that plays its runs again, and how they were made.

    Attributes:
        suite: Name of the suite.
        edition: Id of the edition.
        track: Name of the track.
        name: Name of the entry.
        source: Name of a baseline, or ``"file.py:Class"`` of a submitted file.
        settings: Arguments by what they belong to: ``policy`` or a wrapper's part. For a baseline these are all that it
            sets, so that an entry plays the same when the registered arguments change.
        digest: SHA-256 of the file, or of this package's sources for a baseline.
        noise: For each task's id the number from which its privacy noise follows, 32 hexadecimal digits; empty without
            noise. It was secret until the runs were over.
        is_open: Whether the seeds were public before the entry played; it then has no rank.
        command: The command line that plays the entry.
        package: This package's version and commit.
        machine: Operating system, number of processors and version of Python.
        made: Time at which the entry was first played, ISO 8601, UTC.
        audited: Lower bound on epsilon that an attack on the entry's noise has shown; None without an attack.
        holds: Whether no attack has refuted the claimed epsilon.
        code: Content of the file, which is stored beside; empty for a baseline.
    """

    suite: str
    edition: str
    track: str
    name: str
    source: str
    settings: Settings
    digest: str
    noise: dict[str, str]
    is_open: bool
    command: str
    package: dict[str, str | None]
    machine: dict[str, str | int | None]
    made: str
    audited: float | None = None
    holds: bool = True
    code: bytes = b""

    @property
    def row(self) -> Row:
        """What identifies the entry."""
        return Row(self.suite, self.edition, self.track, self.name)

    @property
    def is_file(self) -> bool:
        """Whether the entry is a submitted file."""
        return ":" in self.source


@dataclass
class ResultTable:
    """The content of a folder of results.

    Attributes:
        editions: The editions by their ids.
        entries: The entries by their rows, finished or not.
        lines: The runs of each finished entry.
    """

    editions: dict[str, Edition] = field(default_factory=dict)
    entries: dict[Row, Entry] = field(default_factory=dict)
    lines: dict[Row, list[Line]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path, new: bool = False) -> "ResultTable":
        """Returns the results in a folder.

        Args:
            folder: The folder.
            new: Whether a folder without results gives an empty table.

        Raises:
            OSError: A file cannot be read.
            BoardError: A file is not in the form in which it is written.
        """
        table = cls()
        if not (folder / ENTRIES).exists():
            if new:
                return table
            raise BoardError(f"{folder} has no {ENTRIES}; a folder of results is required")
        try:
            kept = json.loads((folder / ENTRIES).read_text())
            table.editions = {edition.id: edition for edition in starmap(Edition, kept["editions"])}
            for entry in (Entry(**one) for one in kept["entries"]):
                code = (folder / SOURCES / f"{entry.digest}.py").read_bytes() if entry.is_file else b""
                table.entries[entry.row] = replace(entry, code=code)
            heads, *rows = csv.reader(gzip.decompress((folder / RESULTS).read_bytes()).decode().splitlines())
            for cells in rows:
                names, numbers = cells[:_NAMES], [float(cell) if cell else None for cell in cells[_NAMES:]]
                values: dict[str, Any] = dict(zip(heads, [*names, *numbers], strict=True))
                line = Line(**values)
                table.lines.setdefault(line.row, []).append(line)
        except (ValueError, TypeError, LookupError, AttributeError, EOFError, *_DAMAGED) as error:
            raise BoardError(f"{folder} has no entries or table of results: {error!r}") from error
        return table

    def add(self, other: "ResultTable") -> None:
        """Adds the results of another folder; of a row that both have, the one stays that is ranked, or was first."""
        self.editions = {**other.editions, **self.editions}
        for row, entry in other.entries.items():
            if row not in self.entries or (self.entries[row].is_open and not entry.is_open):
                self.entries[row] = entry
                if row in other.lines:
                    self.lines[row] = other.lines[row]

    def runs_of(self, row: Row) -> list[Line]:
        """Returns the runs of a row, task by task, in the order of its edition's seeds.

        An edition is a suite with seeds that have been drawn. A row may have the first seeds of the edition alone, if
        these are at least :data:`FEWEST_SEEDS` of each task.

        Raises:
            BoardError: The suite has changed since the edition was drawn, or the runs are not those of the edition: one
                is missing, is there twice, or is of another seed.
        """
        suite, edition, lines = SUITES.get(row.suite), self.editions.get(row.edition), self.lines.get(row, [])
        if suite is None or edition is None or suite.digest != edition.digest:
            raise BoardError(f"{row.suite} has changed since edition {row.edition}, or is unknown")
        first = max([FEWEST_SEEDS, *Counter(line.task for line in lines).values()])
        seeds = {task.id: edition.seeds(suite, task)[:first] for task in suite.tasks}
        runs = [(task, f"{seed:032x}") for task, own in seeds.items() for seed in own]
        found = {(line.task, line.seed): line for line in lines}
        if len(lines) != len(runs) or found.keys() != {*runs}:
            raise BoardError(f"{row}: {len(lines)} runs, which are not those of the edition")
        return [found[run] for run in runs]

    def save(self, folder: Path) -> None:
        """Writes the results to a folder; each of its files is replaced in one step."""
        folder.mkdir(parents=True, exist_ok=True)
        entries = []
        for _, entry in sorted(self.entries.items()):
            kept = asdict(entry)
            if code := kept.pop("code"):
                (folder / SOURCES).mkdir(exist_ok=True)
                write_whole(folder / SOURCES / f"{entry.digest}.py", code)
            entries.append(kept)
        editions = [list(astuple(one)) for one in self.editions.values()]
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([Line._fields, *sorted(line for own in self.lines.values() for line in own)])
        listed = f'{{"editions": {_listed(editions)}, "entries": {_listed(entries)}}}\n'
        write_whole(folder / RESULTS, gzip.compress(text.getvalue().encode(), mtime=0))
        write_whole(folder / ENTRIES, listed.encode())


def circumstances() -> dict[str, Any]:
    """Returns how runs are made now: the fields ``command``, ``package``, ``machine`` and ``made`` of an entry."""
    folder = Path(str(files("fedbandit_envs"))).parent
    git = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    here = shutil.which("git") and (folder / ".git").exists()
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip() if here else None
    return {
        "command": shlex.join(["fedbandit", *sys.argv[1:]]),
        "package": {"version": version("fedbandit-envs"), "commit": commit},
        "machine": {"system": platform.platform(), "processors": os.cpu_count(), "python": sys.version},
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _listed(values: list[Any]) -> str:
    """Returns a list as JSON with a line for each of its values."""
    return "[\n" + ",\n".join(json.dumps(value) for value in values) + "\n]"
