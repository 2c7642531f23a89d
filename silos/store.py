"""A silo's store: one file of SQLite, in which every call of the silo is one transaction.

The file has the state after the last call, and for good every release: which events it has booked, and the message. A
process may be killed at any moment. What had been committed is then there, and nothing else. Releases are committed to
the disk before anything is returned (SQLite's ``synchronous=FULL``), so that they survive a loss of power; other calls
of the last moments may get lost with the power, not with the process.
"""

import ctypes
import json
import os
import sqlite3
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np

Release = tuple[int, str, bytes]
"""After which round a release was made, its event, and its message."""


class StoreError(RuntimeError):
    """Raised when a store cannot be used: another process has it, it belongs to another plan, or a write has failed."""


_OPEN: WeakSet["SiloStore"] = WeakSet()


def _never_closed() -> None:
    """Keeps the files of a process that has been copied open in the copy for good.

    SQLite does not know of the copy: closing a file there would take away the log that the process itself goes on with.
    """
    for store in list(_OPEN):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(store._file))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_never_closed)


# The lock is held until the file is closed or the process ends, however it ends.
_OPENING = """
    PRAGMA locking_mode=EXCLUSIVE;
    PRAGMA journal_mode=WAL;
    CREATE TABLE IF NOT EXISTS state (part TEXT, path TEXT, value, PRIMARY KEY (part, path));
    CREATE TABLE IF NOT EXISTS releases (round INTEGER PRIMARY KEY, event TEXT NOT NULL, message BLOB NOT NULL);
"""


class SiloStore:
    """The file of one silo; while it is open no other process can open it.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "silo.db"
        >>> store = SiloStore(path)
        >>> store.save({"policy": {"seed": 3, "means": np.array([0.5])}}, (1, "an event", b"a message"))
        >>> store.close()
        >>> store = SiloStore(path)
        >>> store.state["policy"]["means"], store.releases
        (array([0.5]), [(1, 'an event', b'a message')])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the file, or makes it.

        Args:
            path: Path of the file.

        Raises:
            StoreError: Another process has the store open, or the file is no store.
        """
        self.path, self._process = Path(path), os.getpid()
        try:
            # It holds statistics without noise, which are for nobody else.
            self.path.touch(0o600)
            self._file = sqlite3.connect(self.path, timeout=0.0, isolation_level="IMMEDIATE")
            _OPEN.add(self)
            self._file.executescript(_OPENING)
        except (OSError, sqlite3.Error) as error:
            if hasattr(self, "_file"):
                self._file.close()
            raise StoreError(
                f"store {self.path} cannot be opened, or another process has it: {error}"
            ) from None

    @property
    def state(self) -> dict[str, dict[str, Any]]:
        """The parts of the state that were saved last, by name; empty in a new store."""
        state: dict[str, dict[str, Any]] = {}
        for part, path, value in self._file.execute("SELECT * FROM state"):
            array = isinstance(value, bytes)
            state.setdefault(part, {})[path] = np.load(BytesIO(value)) if array else json.loads(value)
        return state

    @property
    def releases(self) -> list[Release]:
        """Round, event and message of every release, in order."""
        return self._file.execute("SELECT * FROM releases ORDER BY round").fetchall()

    def save(self, state: Mapping[str, Mapping[str, Any]], release: Release | None = None) -> None:
        """Writes parts of the state, and with them a release if one is given, in one transaction.

        Args:
            state: The parts that have changed, by name: arrays and JSON data by path.
            release: Round, event and message of a release; its round must be new.

        Raises:
            StoreError: The write has failed, as on a full disk; the file is as it was, and closed. Or this process is a
                copy (``fork``) of the one that has opened it.
        """
        if os.getpid() != self._process:
            raise StoreError(f"store {self.path} was opened by process {self._process}; open it in this one")
        rows = [(part, path, _cell(value)) for part, kept in state.items() for path, value in kept.items()]
        try:
            self._file.execute(f"PRAGMA synchronous={'FULL' if release else 'NORMAL'}")
            self._file.executemany("DELETE FROM state WHERE part = ?", [(part,) for part in state])
            self._file.executemany("INSERT INTO state VALUES (?, ?, ?)", rows)
            if release is not None:
                self._file.execute("INSERT INTO releases VALUES (?, ?, ?)", release)
            self._file.commit()
            if release is not None:
                # A copy of the main file alone, without the log beside it, has booked all releases, too.
                self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            self._file.close()
            raise StoreError(f"store {self.path} cannot be written and is closed: {error}") from error

    def close(self) -> None:
        """Closes the file, so that another process may open it; in a copy (``fork``) of the process, does nothing."""
        if os.getpid() == self._process:
            self._file.close()


def _cell(value: Any) -> bytes | str:
    """Returns an array in NumPy's format, and JSON data as text."""
    if not isinstance(value, np.ndarray):
        return json.dumps(value)
    np.save(file := BytesIO(), value, allow_pickle=False)
    return file.getvalue()
