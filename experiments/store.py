"""A folder of files with the results of shards; a shard is a part of a run, with some of its seeds.

A file's name is a digest of everything that determines the shard's numbers: its settings, what the files contain that
these name, and the package's code. A file is written beside and renamed, so that it is whole if it exists. So after an
interruption only missing shards are played, and runs that have a shard in common use the same file. Several processes
may share a folder.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, Protocol, Self
from zipfile import BadZipFile

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.basics.entry_points import file_module, named_files, package_digest, texts_in
from fedbandit_envs.wrappers import WRAPPERS
from fedbandit_envs.wrappers.privacy.mechanisms import MECHANISMS

_LOWER = ("", "wrappers", "baselines", "samba", "experiments")
_UPPER = ("leaderboard", "papers", "cli", "lab")
_KINDS = (".py", ".csv", ".json", ".npz")

_ENTRY_POINT = re.compile(r"([A-Za-z_][\w.]*|.+\.py):[A-Za-z_]\w*")


class Cell(Protocol):
    """Interface of what can be played in shards and stored: a run, a measurement, or a shard of one."""

    @property
    def key(self) -> list[Any]:
        """Everything that determines the results, except for this package's code and files' contents, as JSON data."""

    @property
    def size(self) -> float:
        """Amount of work, for progress bars: number of agent-rounds, or of those that would take about as long."""

    def split(self) -> Sequence[Self]:
        """Returns the shards of which the cell consists; a shard returns only itself."""

    def play(self) -> Arrays:
        """Plays the shard, and returns the arrays that its file will contain."""

    def join(self, parts: Sequence[Arrays]) -> Any:
        """Returns the cell's result, put together from the arrays of its shards, in the order of :meth:`split`."""


class Store(NamedTuple):
    """The files of shards in a folder.

    Attributes:
        folder: The folder, which may not exist yet.
    """

    folder: Path

    def path(self, shard: Cell) -> Path:
        """Returns the path of a shard's file, which may not exist yet."""
        key = [*shard.key, source_digest(type(shard).__module__)]
        if files := named_files(key):
            key.append(files)
        text = json.dumps(key, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Returns the shards of some cells that have no file, each of them once."""
        shards = {self.path(shard): shard for cell in cells for shard in cell.split()}
        return [shard for file, shard in shards.items() if not file.exists()]

    def load(self, cell: Cell) -> Any:
        """Returns the result of a cell, put together from its shards' files.

        Raises:
            FileNotFoundError: A shard has not been played.
            OSError: The file of a shard is damaged.
        """
        parts = []
        for path in map(self.path, cell.split()):
            try:
                with np.load(path) as arrays:
                    parts.append(dict(arrays))
            except (ValueError, EOFError, BadZipFile, zlib.error) as error:
                raise OSError(f"{path} is no shard ({error}); remove it and start again") from error
        return cell.join(parts)

    @staticmethod
    def write(file: Path, kept: Arrays) -> None:
        """Writes a shard's file in one step.

        Args:
            file: Path of the file.
            kept: The arrays that playing the shard has returned.

        Raises:
            OSError: The file cannot be written; nothing of it is left.
        """
        out = BytesIO()
        # The type checker would object that an array may have the name of another argument of ``savez_compressed``.
        arrays: dict[str, Any] = dict(kept)
        np.savez_compressed(out, **arrays)
        write_whole(file, out.getvalue())


@cache
def source_digest(module: str = __name__) -> str:
    """Returns the SHA-256 digest of the package's version and of the code and data that a module's numbers depend on.

    Papers, leaderboard, commands and lab do not count, except for the one that the module is in: stored runs stay valid
    when these change. The files are read once for each process.

    Args:
        module: Name of the module of what is stored. If it belongs to another package, that package counts, too.
    """
    digest = hashlib.sha256(version("fedbandit-envs").encode())
    if not module.startswith("fedbandit_envs."):
        digest.update(package_digest(module).encode())
    for name, content in _files(module).items():
        digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()


def _files(module: str) -> dict[str, str]:
    """Returns the digest of every source and data file that a module's numbers depend on, by its path."""
    own = module.removeprefix("fedbandit_envs.").partition(".")[0]
    found = {}
    for folder in (*_LOWER, *(upper for upper in _UPPER if upper == own)):
        # In a checkout folders are side by side, in an installed package inside of fedbandit_envs.
        root = Path(str(files(f"fedbandit_envs.{folder}".rstrip("."))))
        for file in sorted(root.rglob("*")):
            name = file.relative_to(root).as_posix()
            outside = not folder and name.partition("/")[0] in (*_LOWER, *_UPPER)
            if file.suffix in _KINDS and not outside:
                found[f"{folder}/{name}"] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def foreign_modules(settings: Any) -> set[str]:
    """Returns the names of modules of other packages that a run's settings refer to.

    Args:
        settings: JSON data with classes and functions; texts in it may be an entry point ``"module:Class"`` or
            ``"file.py:Class"``, or the name of a wrapper or mechanism that another package (a plug-in) has registered.
    """
    texts = texts_in(settings)
    named = {match[1] for text in texts if (match := _ENTRY_POINT.fullmatch(text))}
    found = {file_module(name).__name__ if name.endswith(".py") else name for name in named}
    for registry in (WRAPPERS, MECHANISMS):
        found |= {registry[text].__module__ for text in texts if registry.package(text)}
    return {module for module in found if module.partition(".")[0] != "fedbandit_envs"}


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file in one step: it never exists with half of its content.

    Args:
        path: Path of the file, which is replaced if it exists; a link stays, and the file that it leads to is replaced.
        content: The new content.

    Raises:
        OSError: The file cannot be written, such as to a full disk. It is as it was before, nothing else is left in its
            folder, and the error names the file.
    """
    path = path.resolve()
    partial = path.with_name(f"{path.stem}.{token_hex(4)}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(partial)) from error
    finally:
        partial.unlink(missing_ok=True)
