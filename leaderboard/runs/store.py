"""The store of shards: each is a file whose name is a digest of everything that its numbers follow from.

A file appears at once and whole, and ends with a digest of its content. So a sweep that was interrupted plays only what
is missing when it is started again, and sweeps that share a run share its shards: of all processes that share a folder,
the one that has the lock on a file plays the shard.
"""

import fcntl
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Protocol, Self

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.leaderboard.runs.source import source_digest

_SEAL = hashlib.sha256().digest_size
_PARTIAL = ".partial"


class Cell(Protocol):
    """Something that is played in shards, or a shard of it: what the executor and the store need of a run."""

    @property
    def key(self) -> list[Any]:
        """Everything that its results follow from but the package's source, as JSON has it."""

    @property
    def size(self) -> float:
        """Amount to play: agent-rounds, or what takes about as long."""

    def split(self) -> Sequence[Self]:
        """Returns its shards; a shard is split into itself."""

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays it, and returns what its file keeps.

        Args:
            advance: Called with the amount that was played since its last call.
        """

    def join(self, parts: Sequence[Arrays]) -> Any:
        """Puts the cell's result together from what was kept of its shards.

        Returns:
            What reports are given; it has ``cpu_seconds``, what playing took.
        """


class DamagedShardError(ValueError):
    """A shard's file does not hold what was written to it; the message names the file."""


class DamagedShardWarning(UserWarning):
    """A damaged shard was found, which counts as missing."""


class Store:
    """A folder of shards' files.

    Attributes:
        folder: The folder, which may not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        """Stands for a folder."""
        self.folder = folder

    def path(self, shard: Cell) -> Path:
        """Returns the path of a shard's file, which may not exist yet."""
        text = json.dumps([*shard.key, source_digest(type(shard).__module__)], sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"

    def shards(self, cells: Iterable[Cell]) -> dict[Path, Cell]:
        """Returns the shards of cells by the paths of their files, each once."""
        return {self.path(shard): shard for cell in cells for shard in cell.split()}

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Returns the shards of cells that have no whole file, each once.

        Warns:
            DamagedShardWarning: A file is damaged; the message names it.
        """
        return [shard for file, shard in self.shards(cells).items() if not self.has(file)]

    def load(self, cell: Cell) -> Any:
        """Returns a cell's result, put together from its shards' files.

        Raises:
            DamagedShardError: A file does not hold what was written to it.
            FileNotFoundError: A shard has not been played.
        """
        return cell.join([self.read(self.path(shard)) for shard in cell.split()])

    def remove_strays(self) -> None:
        """Removes the partial files that killed processes have left."""
        for partial in self.folder.glob(f"*{_PARTIAL}"):
            if lock := ShardLock.take(partial.with_suffix("")):
                lock.give_up()

    @classmethod
    def has(cls, file: Path) -> bool:
        """Returns whether a shard's file exists and is whole.

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
        """Returns the arrays of a shard's file.

        Raises:
            DamagedShardError: The file does not hold what was written to it.
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
        """Returns the content of a shard's file: arrays in NumPy's ``npz`` format, and a digest.

        Args:
            kept: The arrays that playing the shard has returned.
            file: The file; its name is part of the digest, so that one shard's file is never read as another's.
        """
        out = BytesIO()
        # A typed copy: arrays' names might be names of the function's own arguments.
        arrays: dict[str, Any] = dict(kept)
        np.savez_compressed(out, **arrays)
        return out.getvalue() + _seal(out.getvalue(), file.stem)


def _seal(content: bytes, name: str) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


class ShardLock:
    """The right to write a file, which one process at a time has.

    It is the kernel's lock on a partial file, which holds how much of the shard has been played until the shard's
    content replaces that. The lock ends with the process that holds it, however that ends, so a partial file that is
    not locked was left by a dead process.

    Attributes:
        partial: The partial file.
    """

    def __init__(self, file: Path, out: IO[bytes]) -> None:
        """Holds a lock that :meth:`take` has made."""
        self.partial = Path(out.name)
        self._file = file
        self._out = out

    @classmethod
    def take(cls, file: Path) -> "ShardLock | None":
        """Returns the lock on a file, or None while another process has it."""
        partial = cls._partial(file)
        out = partial.open("ab")
        # Between opening and locking, the process that had the lock may have finished and moved the file away.
        with suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(out.fileno()), partial.stat()):
                return cls(file, out)
        out.close()
        return None

    @staticmethod
    def _partial(file: Path) -> Path:
        return file.with_name(f"{file.name}{_PARTIAL}")

    @classmethod
    def progress(cls, file: Path) -> Callable[[float], None]:
        """Returns the function by which the process that plays a shard adds what it has played to the partial file.

        Args:
            file: The shard's file, which the process that started the sweep has locked, perhaps on another machine.
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
        """How much of the shard has been played, in agent-rounds; 0 where it is played without access to the file."""
        try:
            return float(self.partial.read_bytes())
        except (OSError, ValueError):
            return 0.0

    def write(self, content: bytes) -> None:
        """Writes the file, at once and whole, in place of any that is there, and ends the lock."""
        self._out.truncate(0)
        self._out.write(content)
        self._out.flush()
        self.partial.replace(self._file)
        self._out.close()

    def give_up(self) -> None:
        """Ends the lock without writing the file."""
        self.partial.unlink()
        self._out.close()
