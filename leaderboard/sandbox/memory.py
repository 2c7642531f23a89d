"""Arrays in memory that two processes share, and that no third process can open since it has no name."""

import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from fedbandit_envs.basics.arrays import Array

# Seal against later writing, known to Linux since 5.1; the module fcntl has the name from Python 3.13 on only.
_F_SEAL_FUTURE_WRITE = 0x0010

Field = tuple[str, str, tuple[int, ...]]
"""The layout of one array in shared memory: its name, its dtype in the form of ``numpy.dtype.str``, and its shape.

One process sends it to the other as JSON, so that both find the same arrays.
"""


def fields_of(arrays: Mapping[str, Array]) -> tuple[Field, ...]:
    """Returns the layout that arrays have when they are copied into shared memory, in this machine's byte order."""
    return tuple((name, array.dtype.newbyteorder("=").str, array.shape) for name, array in arrays.items())


def bytes_for(fields: Iterable[Field]) -> int:
    """Returns the number of bytes of shared memory needed for arrays of a layout, with a page (4 KiB) to spare."""
    return mmap.PAGESIZE + _record(fields).itemsize


def _record(fields: Iterable[Field]) -> np.dtype:
    """Returns the NumPy record dtype that has one field for each array of a layout.

    Its fields have numbers as names, since an array's own name may be empty.
    """
    return np.dtype([("", dtype, shape) for _, dtype, shape in fields], align=True)


class SharedMemory:
    """Memory that two processes share; the kernel frees it when both have ended, and there is no file to remove.

    Attributes:
        descriptor: File descriptor of the memory, to be sent to the other process. A process may close it after it has
            mapped the memory.
        size: Size of the memory in bytes.
    """

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        """Maps existing shared memory into this process.

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
        """Creates shared memory, filled with zeros, to which this process may write.

        Args:
            size: Size in bytes.
            read_only_for_others: Whether all other processes may only read it. The kernel then refuses to write to it
                or to map it as writable to every process that has the descriptor; only this process's mapping, which
                was made before, stays writable.
        """
        # A module, and seals, of Linux alone.
        import fcntl

        descriptor = os.memfd_create("fedbandit", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        memory = cls(descriptor, writable=True)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(
            descriptor, fcntl.F_ADD_SEALS, seals | (_F_SEAL_FUTURE_WRITE if read_only_for_others else 0)
        )
        return memory

    def arrays(self, fields: Sequence[Field]) -> dict[str, Array]:
        """Returns views of this memory as arrays of a given layout, by name.

        The arrays are stored one after another, and are read-only if this process's mapping is.

        Args:
            fields: The layout: name, dtype and shape of each array.
        """
        record = np.ndarray((), _record(fields), self._map)
        return {
            name: record[part] for (name, _, _), part in zip(fields, record.dtype.names or (), strict=True)
        }
