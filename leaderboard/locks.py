"""Locks on files."""

import sys
from io import FileIO, TextIOWrapper


def lock(file: FileIO | TextIOWrapper | int, *, wait: bool) -> None:
    """Locks an open file for this process, until the file is closed or the process has ended.

    Args:
        file: The file, or its descriptor.
        wait: Whether to wait while another process has the lock.

    Raises:
        BlockingIOError: Another process has the lock, and this one was not to wait.
        OSError: The operating system has no such locks (Windows).
    """
    try:
        import fcntl
    except ImportError as error:
        raise OSError(
            f"files are locked by Python's module fcntl, which {sys.platform} lacks: Linux, macOS or WSL is required"
        ) from error
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
