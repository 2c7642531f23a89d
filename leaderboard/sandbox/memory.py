"""Arrays in memory that two processes share and that has no name by which a third process could open it."""

import fcntl
import mmap
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

import numpy as np

from fedbandit_envs.basics.arrays import Array

# Linux 5.1; named by Python's fcntl from 3.13 on.
_F_SEAL_FUTURE_WRITE = 0x0010
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
# Bytes of a cache line.
_ALIGNMENT = 64


class Field(NamedTuple):
    """The layout of one array, writable as JSON, which both processes must agree on.

    Attributes:
        name: Name of the array.
        dtype: Its dtype in the form of ``numpy.dtype.str``.
        shape: Its shape.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


def fields_of(arrays: Mapping[str, Array]) -> tuple[Field, ...]:
    """Returns the layout of copies of arrays, in this machine's byte order."""
    return tuple(
        Field(name, array.dtype.newbyteorder("=").str, array.shape) for name, array in arrays.items()
    )


def bytes_for(fields: Iterable[Field]) -> int:
    """Returns the size of a memory that holds arrays of this layout, at least a page."""
    return mmap.PAGESIZE + sum(field.nbytes + _ALIGNMENT for field in fields)


class SharedMemory:
    """Memory of two processes; it vanishes with the last process that has it, and there is no file to remove.

    Attributes:
        descriptor: File descriptor, to be sent to the other process; the receiver closes it.
        size: Size in bytes.
    """

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        """Maps memory that exists.

        Args:
            descriptor: File descriptor of the memory.
            writable: Whether this process may write to it.
        """
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._map = mmap.mmap(descriptor, self.size, access=access)

    @classmethod
    def create(cls, size: int, *, read_only_for_others: bool) -> Self:
        """Returns new memory, all zero, to which this process may write.

        Args:
            size: Size in bytes.
            read_only_for_others: Whether the kernel seals it: then no process can map it for writing or write to it
                later, however it came by the descriptor, and this process's mapping is the only writable one.
        """
        descriptor = os.memfd_create("fedbandit", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        memory = cls(descriptor, writable=True)
        fcntl.fcntl(
            descriptor, fcntl.F_ADD_SEALS, _SEALS | (_F_SEAL_FUTURE_WRITE if read_only_for_others else 0)
        )
        return memory

    def arrays(self, fields: Iterable[Field]) -> dict[str, Array]:
        """Returns the arrays of a layout, which lie here one after another; read-only where the memory is."""
        arrays = {}
        offset = 0
        for field in fields:
            arrays[field.name] = np.ndarray(field.shape, field.dtype, self._map, offset)
            offset += -(-field.nbytes // _ALIGNMENT) * _ALIGNMENT
        return arrays
