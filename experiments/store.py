"""A folder of files with the results of shards; a shard is a part of a run, with some of its seeds.

A file's name is a digest of everything that determines the shard's numbers. A file is written in one step, and ends
with a digest of its content. So after an interruption only the missing shards are played, and runs that have a shard in
common use the same file. Several processes may share a folder: the one that has the lock on a file plays the shard.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.basics.files import lock, write_all
from fedbandit_envs.experiments.source import source_digest

_SEAL = hashlib.sha256().digest_size
_PARTIAL = ".partial"


class Cell(Protocol):
    """Interface of what can be played in shards and stored: a run, a measurement, an attack, or a shard of one."""

    @property
    def key(self) -> list[Any]:
        """Everything that determines the results, except for the package's source, as JSON data.

        The name of a shard's file is a digest of this and of the source.
        """

    @property
    def size(self) -> float:
        """Amount of work, for progress bars: number of agent-rounds, or of those that would take about as long."""

    def split(self) -> Sequence[Self]:
        """Returns the shards of which the cell consists; a shard returns only itself."""

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays the shard, and returns the arrays that its file will contain.

        Args:
            advance: Called with the amount of work (see :attr:`size`) that was done since its last call.
        """

    def join(self, parts: Sequence[Arrays]) -> Any:
        """Returns the cell's result, put together from those of its shards.

        Args:
            parts: The arrays that each shard's file contains, in the order of :meth:`split`.

        Returns:
            The result, whose class depends on the cell's. It contains ``cpu_seconds``, the CPU time of playing.
        """


class DamagedShardError(ValueError):
    """The content of a shard's file is not what was written to it; the message names the file."""


class DamagedShardWarning(UserWarning):
    """A shard's file is damaged; the shard counts as missing and will be played again."""


class Store:
    """Reads the shards' files in a folder; it finds the file of a shard, and the shards without a file.

    Attributes:
        folder: The folder, which may not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        """Keeps the folder's path; nothing is read or written yet.

        Args:
            folder: The folder, which may not exist yet.
        """
        self.folder = folder

    def path(self, shard: Cell) -> Path:
        """Returns the path of a shard's file, which may not exist yet."""
        text = json.dumps([*shard.key, source_digest(type(shard).__module__)], sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"

    def shards(self, cells: Iterable[Cell]) -> dict[Path, Cell]:
        """Returns all shards of some runs or other cells, by the paths of their files.

        A shard that several cells have in common is there once.
        """
        return {self.path(shard): shard for cell in cells for shard in cell.split()}

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Returns the shards of some runs or other cells that have no file, or only a damaged one.

        Warns:
            DamagedShardWarning: A file is damaged; the message names it.
        """
        return [shard for file, shard in self.shards(cells).items() if not self.has(file)]

    def load(self, cell: Cell) -> Any:
        """Returns the result of a run or other cell, put together from its shards' files.

        Raises:
            DamagedShardError: The content of a file is not what was written to it.
            FileNotFoundError: A shard has not been played.
        """
        return cell.join([self.load_shard(shard) for shard in cell.split()])

    def load_shard(self, shard: Cell) -> Arrays:
        """Returns the arrays that a shard's file contains, by name.

        Raises:
            DamagedShardError: The content of the file is not what was written to it.
            FileNotFoundError: The shard has not been played.
        """
        return self.read(self.path(shard))

    def remove_strays(self) -> None:
        """Removes partial files that no process has locked: they are left over from killed processes."""
        for partial in self.folder.glob(f"*{_PARTIAL}"):
            if lock := ShardLock.take(partial.with_suffix("")):
                lock.give_up()

    @classmethod
    def has(cls, file: Path) -> bool:
        """Returns whether a shard's file exists and is undamaged.

        Warns:
            DamagedShardWarning: The file is damaged; the message names it.
        """
        try:
            cls.read(file)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except DamagedShardError as error:
            warnings.warn(f"{error}; it is played again", DamagedShardWarning, stacklevel=2)
            return False
        return True

    @staticmethod
    def read(file: Path) -> Arrays:
        """Returns the arrays that a shard's file contains, by name.

        Raises:
            DamagedShardError: The content of the file is not what was written to it.
            FileNotFoundError: There is no file.
        """
        whole = file.read_bytes()
        content, seal = whole[:-_SEAL], whole[-_SEAL:]
        if seal != _seal(content, file.stem):
            raise DamagedShardError(f"{file} is damaged: it does not hold what was written to it")
        with np.load(BytesIO(content)) as arrays:
            return dict(arrays)

    @staticmethod
    def content(kept: Arrays, file: Path) -> bytes:
        """Returns the bytes to write into a shard's file: arrays in NumPy's ``npz`` format, followed by a digest.

        Args:
            kept: The arrays that playing the shard has returned.
            file: Path of the file. Its name is part of the digest, so that a file that was renamed counts as damaged.
        """
        out = BytesIO()
        # For the type checker, which would otherwise object that an array's name might be that of one of the other
        # arguments of ``savez_compressed``.
        arrays: dict[str, Any] = dict(kept)
        np.savez_compressed(out, **arrays)
        return out.getvalue() + _seal(out.getvalue(), file.stem)


def _seal(content: bytes, name: str) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


class ShardLock:
    """A lock on a shard's file, which one process at a time can have; its owner plays the shard and writes the file.

    It is the operating system's lock on a second, partial file beside it. While the shard is played, the partial file
    contains how much has been played; then it gets the shard's content and is renamed. The system ends the lock when
    its owner ends for whatever reason, so a partial file without a lock was left by a process that has died.

    Attributes:
        partial: Path of the partial file.
    """

    def __init__(self, file: Path, out: FileIO) -> None:
        """Makes the object for a lock that :meth:`take` has obtained.

        Args:
            file: Path of the shard's file.
            out: The partial file, opened without a buffer, and locked.
        """
        self.partial = self._partial(file)
        self._file = file
        self._out = out

    @classmethod
    def take(cls, file: Path) -> "ShardLock | None":
        """Obtains the lock on a shard's file and returns it; returns None if another process has it."""
        partial = cls._partial(file)
        out = FileIO(partial, "a")
        # Between opening and locking, the process that had the lock may have finished and moved the file away.
        with suppress(BlockingIOError, FileNotFoundError):
            lock(out, wait=False)
            if os.path.samestat(os.fstat(out.fileno()), partial.stat()):
                return cls(file, out)
        out.close()
        return None

    @staticmethod
    def _partial(file: Path) -> Path:
        return file.with_name(f"{file.name}{_PARTIAL}")

    @classmethod
    def progress(cls, file: Path) -> Callable[[float], None]:
        """Returns a function that writes into the partial file how much of the shard has been played.

        The process that plays the shard calls it with the number of agent-rounds played since the last call.

        Args:
            file: Path of the shard's file. Another process, perhaps on another machine, may have the lock on it.
        """
        played = 0.0

        def advance(more: float) -> None:
            nonlocal played
            played += more
            with suppress(OSError), cls._partial(file).open("r+b") as out:
                out.write(f"{played:<24}".encode())

        advance(0.0)
        return advance

    @property
    def played(self) -> float:
        """How much of the shard has been played, in agent-rounds.

        It is 0 if the shard is played on a machine that cannot write the partial file.
        """
        try:
            return float(self.partial.read_bytes())
        except (OSError, ValueError):
            return 0.0

    def write(self, content: bytes) -> None:
        """Writes the shard's file in one step, in place of any that exists, and ends the lock.

        Args:
            content: The bytes to write, from :meth:`Store.content`.

        Raises:
            OSError: The file cannot be written; the process still has the lock, which it can give up.
        """
        self._out.truncate(0)
        write_all(self._out, content)
        self.partial.replace(self._file)
        self._out.close()

    def give_up(self) -> None:
        """Removes the partial file and ends the lock, without writing the shard's file."""
        self.partial.unlink()
        self._out.close()
