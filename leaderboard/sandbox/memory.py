"""Arrays in memory that two processes share and that has no name by which a third process could open it."""

import fcntl
import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from fedbandit_envs.basics.arrays import Array

# Linux 5.1; named by Python's fcntl from 3.13 on.
_F_SEAL_FUTURE_WRITE = 0x0010
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

Field = tuple[str, str, tuple[int, ...]]
"""The layout of one array, writable as JSON, which both processes must agree on: its name, its dtype in the form of
``numpy.dtype.str``, and its shape."""


def fields_of(arrays: Mapping[str, Array]) -> tuple[Field, ...]:
    """Returns the layout of copies of arrays, in this machine's byte order."""
    return tuple((name, array.dtype.newbyteorder("=").str, array.shape) for name, array in arrays.items())


def bytes_for(fields: Iterable[Field]) -> int:
    """Returns the size of a memory that holds arrays of this layout, at least a page."""
    return mmap.PAGESIZE + _record(fields).itemsize


def _record(fields: Iterable[Field]) -> np.dtype:
    """Returns the dtype of a record with one part an array; parts are numbered, since an array's name may be empty."""
    return np.dtype([("", dtype, shape) for _, dtype, shape in fields], align=True)


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

    def arrays(self, fields: Sequence[Field]) -> dict[str, Array]:
        """Returns the arrays of a layout, which lie here one after another; read-only where the memory is."""
        record = np.ndarray((), _record(fields), self._map)
        return {
            name: record[part] for (name, _, _), part in zip(fields, record.dtype.names or (), strict=True)
        }
