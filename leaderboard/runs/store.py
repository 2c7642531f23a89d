"""The store of shards: each is a file whose name is a digest of everything that its numbers follow from.

A file appears at once and whole, and ends with a digest of its content. So a sweep that was interrupted plays only what
is missing when it is started again, and sweeps that share a run share its shards.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.leaderboard.runs.source import source_digest

_SEAL = hashlib.sha256().digest_size


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


def path(shard: Cell, folder: Path) -> Path:
    """Returns the path of a shard's file, which may not exist yet."""
    text = json.dumps([*shard.key, source_digest(type(shard).__module__)], sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"


def packed(kept: Arrays, name: str) -> bytes:
    """Returns the content of a shard's file: arrays in NumPy's ``npz`` format, and a digest.

    Args:
        kept: The arrays that playing the shard has returned.
        name: Name of the file without its suffix, so that one shard's file is never read as another's.
    """
    out = BytesIO()
    # A typed copy: arrays' names might be names of the function's own arguments.
    arrays: dict[str, Any] = dict(kept)
    np.savez_compressed(out, **arrays)
    return out.getvalue() + _seal(out.getvalue(), name)


def _seal(content: bytes, name: str) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


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


def is_kept(file: Path) -> bool:
    """Returns whether a shard's file exists and is whole.

    Warns:
        DamagedShardWarning: The file is damaged; the message names it.
    """
    try:
        read(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except DamagedShardError as error:
        warnings.warn(f"{error}; it is played again", DamagedShardWarning, stacklevel=2)
        return False
    return True


def missing_shards(cells: Sequence[Cell], folder: Path) -> list[Cell]:
    """Returns the shards of cells that have no whole file, each once.

    Warns:
        DamagedShardWarning: A file is damaged; the message names it.
    """
    distinct = {path(shard, folder): shard for cell in cells for shard in cell.split()}
    return [shard for file, shard in distinct.items() if not is_kept(file)]


def load(cell: Cell, folder: Path) -> Any:
    """Returns a cell's result, put together from its shards' files.

    Raises:
        DamagedShardError: A file does not hold what was written to it.
        FileNotFoundError: A shard has not been played.
    """
    return cell.join([read(path(shard, folder)) for shard in cell.split()])
