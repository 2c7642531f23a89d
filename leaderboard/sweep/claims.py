"""Who plays a shard: of all runs on a folder the one that holds its claim.

A claim is the kernel's lock on a partial file. So it ends with the process that holds it, however that ends, and a
partial file that nobody has locked is a dead process's.
"""

import fcntl
import os
from pathlib import Path
from typing import IO

_SUFFIX = ".partial"


class Claim:
    """The right to write a file, which one process has at a time."""

    def __init__(self, file: Path, partial: IO[bytes]) -> None:
        """Is made by :meth:`take`."""
        self._file = file
        self._out = partial

    @property
    def partial(self) -> Path:
        """The partial file."""
        return Path(self._out.name)

    @classmethod
    def take(cls, file: Path) -> "Claim | None":
        """Returns the claim on a file, or None while somebody else has it."""
        return cls._lock(file, file.with_name(f"{file.name}{_SUFFIX}"), "ab")

    @classmethod
    def _lock(cls, file: Path, path: Path, mode: str) -> "Claim | None":
        partial = path.open(mode)
        try:
            fcntl.flock(partial, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, whoever had the claim may have finished and moved the file away.
            if os.path.samestat(os.fstat(partial.fileno()), path.stat()):
                return cls(file, partial)
        except (BlockingIOError, FileNotFoundError):
            pass
        partial.close()
        return None

    def write(self, content: bytes) -> None:
        """Lets the file appear with this content, in place of any that is there, and ends the claim."""
        self._out.truncate(0)
        self._out.write(content)
        self._out.flush()
        self.partial.replace(self._file)
        self._out.close()

    def give_up(self) -> None:
        """Ends the claim without a file."""
        self.partial.unlink()
        self._out.close()


def remove_strays(folder: Path) -> None:
    """Removes what processes that were killed have left of files they were to write."""
    for path in folder.glob(f"*{_SUFFIX}"):
        try:
            claim = Claim._lock(path, path, "r+b")
        except FileNotFoundError:
            continue
        if claim:
            claim.give_up()
