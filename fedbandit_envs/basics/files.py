"""Writing files in one step, on disks that may be full: nothing half-written is left, and errors name the file."""

from io import FileIO
from pathlib import Path
from secrets import token_hex


def write_all(out: FileIO, content: bytes) -> None:
    """Writes bytes to a file that was opened without a buffer, so that nothing is written after an error.

    Args:
        out: The file.
        content: The bytes.

    Raises:
        OSError: They cannot be written, such as to a full disk; some of them may have been. The error names the file.
    """
    left = memoryview(content)
    try:
        while left:
            left = left[out.write(left) :]
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(out.name)) from error


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file in one step: it never exists with half of its content.

    Args:
        path: Path of the file, which is replaced if it exists; a link stays, and the file that it leads to is replaced.
        content: The new content.

    Raises:
        OSError: The file cannot be written; it is as it was before, and nothing else is left in its folder.
    """
    path = path.resolve()
    partial = path.with_name(f"{path.stem}.{token_hex(4)}.partial")
    try:
        with FileIO(partial, "w") as out:
            write_all(out, content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
