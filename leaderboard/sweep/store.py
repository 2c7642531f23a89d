"""Where shards are kept: each in a file of its own, known by what its content follows from.

A file appears at once and whole, and ends with a digest of what it holds. So whatever ends a sweep, started again it
plays only what is missing, and sweeps that share a run share its shards.
"""

import hashlib
import json
import warnings
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Arrays
from fedbandit_envs.leaderboard.sweep.cell import Cell
from fedbandit_envs.leaderboard.sweep.source import source_digest

_SEAL = hashlib.sha256().digest_size


class DamagedShardError(ValueError):
    """A shard's file does not hold what was written to it: the message names it."""


class DamagedShardWarning(UserWarning):
    """A damaged shard has been found, and counts as missing."""


def path(shard: Cell, folder: Path) -> Path:
    """Returns where a shard's file is, or will be."""
    text = json.dumps([*shard.key, source_digest(type(shard).__module__)], sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"


def packed(kept: Arrays, name: str) -> bytes:
    """Returns what a shard's file is to hold: arrays as NumPy's ``npz``, and a digest.

    Args:
        kept: What playing the shard has returned.
        name: Of the file, without its suffix; so one shard's file cannot be taken for another's.
    """
    out = BytesIO()
    # Names are the arrays' own, whatever else the function takes by name.
    arrays: dict[str, Any] = dict(kept)
    np.savez_compressed(out, **arrays)
    return out.getvalue() + _seal(out.getvalue(), name)


def _seal(content: bytes, name: str) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


def read(file: Path) -> Arrays:
    """Reads a shard's file.

    Raises:
        DamagedShardError: It does not hold what was written to it.
        FileNotFoundError: There is none.
    """
    with np.load(BytesIO(_content(file))) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _content(file: Path) -> bytes:
    """Reads a shard's file, but for the digest; see :func:`read`."""
    whole = file.read_bytes()
    content, seal = whole[:-_SEAL], whole[-_SEAL:]
    if seal != _seal(content, file.stem):
        raise DamagedShardError(f"{file} is damaged: it does not hold what was written to it")
    return content


def is_kept(file: Path) -> bool:
    """Says whether a shard's file is there; one that is damaged is not.

    Warns:
        DamagedShardWarning: It is damaged; names it.
    """
    try:
        _content(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except DamagedShardError as error:
        warnings.warn(f"{error}; it is played again", DamagedShardWarning, stacklevel=2)
        return False
    return True


def missing_shards(wanted: Sequence[Cell], folder: Path) -> list[Cell]:
    """Returns those shards, each once, that are not kept.

    Warns:
        DamagedShardWarning: A file is damaged; names it.
    """
    distinct = {path(shard, folder): shard for shard in wanted}
    return [shard for file, shard in distinct.items() if not is_kept(file)]


def load(wanted: Sequence[Cell], folder: Path) -> Any:
    """Puts a run together from its shards' files.

    Raises:
        DamagedShardError: A file does not hold what was written to it.
        FileNotFoundError: A shard has not been played.
    """
    return wanted[0].join([read(path(shard, folder)) for shard in wanted])
