"""Locks on the files of shards: of all processes that share a folder, the one with the lock plays the shard.

A lock is the kernel's lock on a partial file, which holds how much of the shard has been played until the shard's
content replaces that. The lock ends with the process that holds it, however that ends, so a partial file that is not
locked was left by a dead process.
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

_SUFFIX = ".partial"


class ShardLock:
    """The right to write a file, which one process at a time has.

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
        partial = _partial(file)
        out = partial.open("ab")
        # Between opening and locking, the process that had the lock may have finished and moved the file away.
        with suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(out.fileno()), partial.stat()):
                return cls(file, out)
        out.close()
        return None

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


def progress_of(file: Path) -> Callable[[float], None]:
    """Returns the function by which the process that plays a shard adds what it has played to the partial file.

    Args:
        file: The shard's file, which the process that started the sweep has locked, perhaps on another machine.
    """
    played = 0.0

    def advance(more: float) -> None:
        nonlocal played
        played += more
        with suppress(OSError), _partial(file).open("r+b") as out:
            out.write(f"{played:<24}".encode())

    advance(0.0)
    return advance


def remove_strays(folder: Path) -> None:
    """Removes the partial files that killed processes have left in a folder."""
    for partial in folder.glob(f"*{_SUFFIX}"):
        if lock := ShardLock.take(partial.with_suffix("")):
            lock.give_up()


def _partial(file: Path) -> Path:
    return file.with_name(f"{file.name}{_SUFFIX}")
