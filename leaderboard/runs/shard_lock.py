"""Locks on the files of shards: of all processes that share a folder, the one with the lock plays the shard.

A lock is the kernel's lock on a partial file. So it ends with the process that holds it, however that ends, and a
partial file that is not locked was left by a dead process.
"""

import fcntl
import os
from pathlib import Path
from typing import IO

_SUFFIX = ".partial"


class ShardLock:
    """The right to write a file, which one process at a time has."""

    def __init__(self, file: Path, partial: IO[bytes]) -> None:
        """Holds a lock that :meth:`take` has made."""
        self._file = file
        self._out = partial

    @property
    def partial(self) -> Path:
        """The partial file."""
        return Path(self._out.name)

    @classmethod
    def take(cls, file: Path) -> "ShardLock | None":
        """Returns the lock on a file, or None while another process has it."""
        return cls._lock(file, file.with_name(f"{file.name}{_SUFFIX}"), "ab")

    @classmethod
    def _lock(cls, file: Path, path: Path, mode: str) -> "ShardLock | None":
        partial = path.open(mode)
        try:
            fcntl.flock(partial, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, the process that had the lock may have finished and moved the file away.
            if os.path.samestat(os.fstat(partial.fileno()), path.stat()):
                return cls(file, partial)
        except (BlockingIOError, FileNotFoundError):
            pass
        partial.close()
        return None

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


def remove_strays(folder: Path) -> None:
    """Removes the partial files that killed processes have left in a folder."""
    for path in folder.glob(f"*{_SUFFIX}"):
        try:
            lock = ShardLock._lock(path, path, "r+b")
        except FileNotFoundError:
            continue
        if lock:
            lock.give_up()
