"""A folder of files with the results of shards; a shard is a part of a run, with some of its seeds.

A file's name is a digest of everything that determines the shard's numbers: its settings and the package's code. A file
is written beside and renamed, and ends with a digest of its content. So after an interruption only missing shards are
played, and runs that have a shard in common use the same file. Several processes may share a folder.
"""

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.basics.entry_points import file_module, package_files
from fedbandit_envs.basics.files import write_whole
from fedbandit_envs.wrappers import WRAPPERS
from fedbandit_envs.wrappers.privacy.mechanisms import MECHANISMS

_SEAL = hashlib.sha256().digest_size
_LOWER = ("", "wrappers", "baselines", "samba", "experiments")
_UPPER = ("leaderboard", "papers", "cli", "lab")
_KINDS = (".py", ".csv", ".json", ".npz")
_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class Cell(Protocol):
    """Interface of what can be played in shards and stored: a run, a measurement, or a shard of one."""

    @property
    def key(self) -> list[Any]:
        """Everything that determines the results, except for the package's code, as JSON data."""

    @property
    def size(self) -> float:
        """Amount of work, for progress bars: number of agent-rounds, or of those that would take about as long."""

    def split(self) -> Sequence[Self]:
        """Returns the shards of which the cell consists; a shard returns only itself."""

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays the shard, and returns the arrays that its file will contain.

        Args:
            advance: A function that is called with the amount of work that was done since its last call.
        """

    def join(self, parts: Sequence[Arrays]) -> Any:
        """Returns the cell's result, put together from the arrays of its shards, in the order of :meth:`split`."""


class DamagedShardError(ValueError):
    """The content of a shard's file is not what was written to it; the message names the file."""


class Store:
    """The files of shards in a folder.

    Attributes:
        folder: The folder, which may not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        """Keeps the folder's path; nothing is read or written yet."""
        self.folder = folder

    def path(self, shard: Cell) -> Path:
        """Returns the path of a shard's file, which may not exist yet."""
        text = json.dumps([*shard.key, source_digest(type(shard).__module__)], sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Returns the shards of some cells that have no file, or only a damaged one, each of them once.

        Warns:
            UserWarning: A file is damaged; the message names it.
        """
        found = []
        for file, shard in {self.path(shard): shard for cell in cells for shard in cell.split()}.items():
            if not self.has(file):
                found.append(shard)
                if file.exists():
                    warnings.warn(f"{file} is damaged; it is played again", stacklevel=2)
        return found

    def load(self, cell: Cell) -> Any:
        """Returns the result of a cell, put together from its shards' files.

        Raises:
            DamagedShardError: The content of a file is not what was written to it.
            FileNotFoundError: A shard has not been played.
        """
        return cell.join([self.load_shard(shard) for shard in cell.split()])

    def load_shard(self, shard: Cell) -> Arrays:
        """Returns the arrays of a shard by name; raises the same errors as :meth:`load`."""
        return self.read(self.path(shard))

    @classmethod
    def has(cls, file: Path) -> bool:
        """Returns whether a shard's file exists and is undamaged."""
        try:
            cls.read(file)
        except (FileNotFoundError, NotADirectoryError, DamagedShardError):
            return False
        return True

    @staticmethod
    def read(file: Path) -> Arrays:
        """Returns the arrays in a shard's file by name; raises the same errors as :meth:`load`."""
        whole = file.read_bytes()
        content, seal = whole[:-_SEAL], whole[-_SEAL:]
        if seal != _seal(content, file.stem):
            raise DamagedShardError(f"{file} is damaged: it does not hold what was written to it")
        with np.load(BytesIO(content)) as arrays:
            return dict(arrays)

    @staticmethod
    def write(file: Path, kept: Arrays) -> None:
        """Writes a shard's file in one step: arrays in NumPy's ``npz`` format, followed by a digest.

        Args:
            file: Path of the file. The digest includes its name, so that a file that was renamed counts as damaged.
            kept: The arrays that playing the shard has returned.

        Raises:
            OSError: The file cannot be written; nothing of it is left.
        """
        out = BytesIO()
        # The type checker would object that an array may have the name of another argument of ``savez_compressed``.
        arrays: dict[str, Any] = dict(kept)
        np.savez_compressed(out, **arrays)
        write_whole(file, out.getvalue() + _seal(out.getvalue(), file.stem))


def _seal(content: bytes, name: str) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


@cache
def source_digest(module: str = __name__) -> str:
    """Returns the SHA-256 digest of the package's version and of the code and data that a module's numbers depend on.

    Papers, leaderboard, commands and lab do not count, except for the one that the module is in: stored runs stay valid
    when these change. The files are read once for each process.

    Args:
        module: Name of the module of what is stored. If it belongs to another package, that package counts, too.
    """
    digest = hashlib.sha256(version("fedbandit-envs").encode())
    if is_foreign(module):
        digest.update(package_digest(module).encode())
    own = module.removeprefix("fedbandit_envs.").partition(".")[0]
    for folder in (*_LOWER, *(upper for upper in _UPPER if upper == own)):
        for name, content in _files(folder).items():
            digest.update(f"{folder}/{name}\0{content}\0".encode())
    return digest.hexdigest()


@cache
def _files(folder: str) -> Mapping[str, str]:
    """Returns the digest of every source and data file of a folder of this package, by its path in the folder."""
    # Found by import name: in a checkout folders are side by side, in an installed package inside of fedbandit_envs.
    root = Path(str(files(f"fedbandit_envs.{folder}".rstrip("."))))
    found = sorted(file for file in root.rglob("*") if file.suffix in _KINDS and file.is_file())
    names = {file.relative_to(root).as_posix(): file for file in found}
    outside = () if folder else (*_LOWER[1:], *_UPPER)
    return {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in names.items()
        if name.partition("/")[0] not in outside
    }


def is_foreign(module: str) -> bool:
    """Returns whether a module belongs to another package than this project."""
    return module.partition(".")[0] != "fedbandit_envs"


@cache
def package_digest(module: str) -> str:
    """Returns the SHA-256 digest of all files of the package that a module is in, including data and compiled files.

    Args:
        module: Name of the module; if it is not in a package, its own file is the only one.

    Raises:
        ModuleNotFoundError: There is no such package.
        ValueError: A part of the package is a link to a folder.
    """
    digest = hashlib.sha256(module.partition(".")[0].encode())
    for name, file in package_files(module).items():
        digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\0".encode())
    return digest.hexdigest()


def foreign_modules(settings: Any) -> Iterator[str]:
    """Yields the names of modules of other packages that a run's settings refer to.

    Args:
        settings: JSON data; texts in it may be an entry point ``"module:Class"`` or ``"file.py:Class"``, or the name of
            a wrapper or mechanism that another package (a plug-in) has registered.
    """
    match settings:
        case str():
            file, _, attribute = settings.rpartition(":")
            module = file if _ENTRY_POINT.fullmatch(settings) else ""
            if attribute and file.endswith(".py") and Path(file).is_file():
                module = file_module(file).__name__
            for registry in (WRAPPERS, MECHANISMS):
                if not module and registry.package(settings):
                    module = registry[settings].__module__
            if module and is_foreign(module):
                yield module
        case Mapping():
            yield from foreign_modules(list(settings.values()))
        case Sequence():
            for value in settings:
                yield from foreign_modules(value)
