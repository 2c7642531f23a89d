"""Arrays in memory that two processes share, without a name by which a third could find them."""

import fcntl
import mmap
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array

# Linux 5.1; in Python's fcntl from 3.13 on.
_F_SEAL_FUTURE_WRITE = 0x0010
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
# Of a cache line.
_ALIGNMENT = 64


class Field(NamedTuple):
    """Where an array lies: what both sides must know of it, in JSON.

    Attributes:
        name: Of the array.
        dtype: As ``numpy.dtype.str`` says it.
        shape: Of the array.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


def fields_of(arrays: Mapping[str, Array]) -> tuple[Field, ...]:
    """Says what copies of arrays are, in this machine's byte order."""
    return tuple(
        Field(name, array.dtype.newbyteorder("=").str, array.shape) for name, array in arrays.items()
    )


def bytes_for(fields: Iterable[Field]) -> int:
    """Returns the size of a memory that holds such arrays, at least a page."""
    return mmap.PAGESIZE + sum(field.nbytes + _ALIGNMENT for field in fields)


class SharedMemory:
    """Memory that is gone when the last process that has it is: there is no file to clean up.

    Attributes:
        size: In bytes.
        descriptor: To be handed to the other process; closed by :meth:`close_descriptor`.
    """

    def __init__(self, size: int, *, read_only_for_others: bool) -> None:
        """Makes memory that is all zero.

        Args:
            size: In bytes.
            read_only_for_others: Whether it is sealed: no process can then ever map it for writing or write to it,
                by whatever way it comes by the descriptor; the mapping that this process has is the only one.
        """
        self.size = size
        self.descriptor = os.memfd_create("fedbandit", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        self._map = mmap.mmap(self.descriptor, size)
        fcntl.fcntl(
            self.descriptor, fcntl.F_ADD_SEALS, _SEALS | (_F_SEAL_FUTURE_WRITE if read_only_for_others else 0)
        )

    def close_descriptor(self) -> None:
        """Closes what was handed on; the memory stays."""
        os.close(self.descriptor)

    def arrays(self, fields: Iterable[Field]) -> dict[str, Array]:
        """Returns the arrays of ``fields``, which lie here one after another."""
        return _cut(self._map, fields)


class SharedView:
    """The same memory, seen by the other process.

    Attributes:
        size: In bytes.
    """

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        """Maps it, and closes the descriptor."""
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self.size = os.fstat(descriptor).st_size
        self._map = mmap.mmap(descriptor, self.size, access=access)
        os.close(descriptor)

    def arrays(self, fields: Iterable[Field]) -> dict[str, Array]:
        """Returns the arrays of ``fields``, which lie here one after another; read-only where the memory is."""
        return _cut(self._map, fields)


def _cut(memory: mmap.mmap, fields: Iterable[Field]) -> dict[str, Array]:
    arrays = {}
    offset = 0
    for field in fields:
        arrays[field.name] = np.ndarray(field.shape, field.dtype, memory, offset)
        offset += -(-field.nbytes // _ALIGNMENT) * _ALIGNMENT
    return arrays
