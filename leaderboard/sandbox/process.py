"""Starts and ends the child process of a submitted policy.

It is a new Python interpreter that inherits nothing from the parent but one end of a channel.
"""

import importlib.util
import json
import os
import secrets
import signal
import site
import socket
import subprocess
import sys
import sysconfig
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from fedbandit_envs.leaderboard.locks import lock
from fedbandit_envs.leaderboard.sandbox.source import Source

_INSIDE = "fedbandit_envs.leaderboard.sandbox.inside"
_FLOORS = ("", ".wrappers", ".baselines", ".leaderboard")
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/proc/cpuinfo",
           "/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/present")  # fmt: skip
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_PREFIX = "fedbandit-entry-"
_SECONDS_TO_END, _SECONDS_TO_DIE = 2.0, 10.0
_ENDINGS = {"SIGXCPU": " (all of its CPU time is used up)", "SIGKILL": " (perhaps out of memory or CPU time)"}


def require_linux() -> None:
    """Raises an error unless the operating system is Linux, whose kernel confines the processes.

    Raises:
        OSError: It is another one.
    """
    if sys.platform != "linux":
        raise OSError(f"submitted policies play in a process that Linux confines; this is {sys.platform}")


class SandboxProcess:
    """A running child process that plays a submitted policy.

    Attributes:
        end: The parent's end of the channel to the child.
    """

    def __init__(
        self, source: Source, settings: Mapping[str, Any], memory_bytes: int, cpu_seconds: int
    ) -> None:
        """Starts the process, which sends a message as soon as it is confined.

        Args:
            source: Place of the policy's code.
            settings: Keyword arguments with which the policy is made.
            memory_bytes: Limit of the child's address space, in bytes.
            cpu_seconds: CPU time in seconds after which the kernel ends the child.

        Raises:
            OSError: The system cannot start another process, or it is not Linux.
            ModuleNotFoundError: The entry point's module does not exist.
        """
        require_linux()
        # Only the folders of this package may be read. In a checkout they are side by side; the checkout itself, which
        # may have private files, stays closed.
        specs = [importlib.util.find_spec(f"fedbandit_envs{floor}") for floor in _FLOORS]
        packages = [str(path) for spec in specs if spec for path in spec.submodule_search_locations or ()]
        cache = os.environ.get("NUMBA_CACHE_DIR")
        python = [*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, *site.getsitepackages()]
        readable = {*packages, *python, *_SYSTEM, *([cache] if cache else [])}
        self.end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ExitStack() as ends, theirs:
            folder = ends.enter_context(_own_folder())
            ends.enter_context(self.end)
            arguments = {
                "descriptor": theirs.fileno(), "parent": os.getpid(), "source": asdict(source.lent(folder)),
                "settings": dict(settings), "memory_bytes": memory_bytes,
                "cpu_seconds": cpu_seconds, "readable": sorted(readable),
            }  # fmt: skip
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-m", _INSIDE, json.dumps(arguments)],
                pass_fds=[theirs.fileno()],
                cwd=folder,
                env={
                    "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder,
                    "MPLCONFIGDIR": folder, **dict.fromkeys(_THREADS, "1"),
                    **({"NUMBA_CACHE_DIR": cache} if cache else {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
            # When this object is closed or no longer used: kills the process, waits for its end, closes the channel and
            # removes the folder. (Callbacks are called in the reverse order of their registration.)
            ends.callback(_end, self._process)
            self._end_it = weakref.finalize(self, ends.pop_all().close)

    def ending(self) -> str:
        """Ends the process if it is still running, and returns a text that says how it ended."""
        try:
            code = self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            return "it has closed its channel"
        finally:
            self.close()
        # In namespaces, the process that waits for the policy's exits with 128 and the number of the signal.
        number = -code if code < 0 else code - 128
        if number not in signal.valid_signals():
            return f"its process has exited with code {code}"
        reason = signal.Signals(number)
        return f"its process was ended by {reason.name}{_ENDINGS.get(reason.name, '')}"

    def close(self) -> None:
        """Ends the process and removes its folder; a second call does nothing."""
        self._end_it()


@contextmanager
def _own_folder() -> Iterator[str]:
    """Makes a folder for a child process and removes it at the end; its path is the context manager's value.

    A lock on the folder tells other runs that its owner is alive, since the kernel gives up the lock of a process that
    has ended in whatever way. Folders without that are removed first.
    """
    _remove_orphans(tempfile.gettempdir())
    folder, descriptor = None, -1
    while folder is None or not os.path.exists(folder):
        # Another run may have removed the folder before it was locked.
        with suppress(FileNotFoundError):
            folder = tempfile.mkdtemp(prefix=_PREFIX)
            descriptor = os.open(folder, os.O_DIRECTORY)
            lock(descriptor, wait=True)
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(descriptor)


@cache
def _remove_orphans(place: str) -> None:
    """Removes folders of child processes whose owner is dead; it does so once in the life of this process.

    Args:
        place: Folder in which temporary files are created.
    """
    for path in Path(place).glob(f"{_PREFIX}*"):
        with suppress(OSError), ExitStack() as ends:
            descriptor = os.open(path, os.O_DIRECTORY | os.O_NOFOLLOW)
            ends.callback(os.close, descriptor)
            # Another user could replace what is in a folder of theirs by links while it is being removed.
            if os.fstat(descriptor).st_uid == os.geteuid():
                lock(descriptor, wait=False)
                _remove(str(path))


def _remove(folder: str) -> None:
    """Removes a folder with whatever a child process has left in it; what cannot be removed stays.

    Folders within it may be nested deeper than a path or a stack of calls can be long, so that the content of each is
    moved up until there is none. They may also have been closed to their owner.
    """
    with suppress(OSError):
        while inner := [one.path for one in os.scandir(folder) if one.is_dir(follow_symlinks=False)]:
            for path in inner:
                os.chmod(path, 0o700)
                for one in list(os.scandir(path)):
                    if one.is_dir(follow_symlinks=False):
                        os.chmod(one.path, 0o700)
                    os.rename(one.path, Path(folder, secrets.token_hex(16)))
                os.rmdir(path)
        for one in list(os.scandir(folder)):
            os.unlink(one.path)
        os.rmdir(folder)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a child process and waits until it and all processes that it has started are gone."""
    # If the policy plays in namespaces, the child is a process that on SIGTERM ends the policy's and then itself, which
    # proves that nothing of it runs any more, and keeps its CPU time. Otherwise the child is the policy's own process.
    process.terminate()
    try:
        process.wait(_SECONDS_TO_DIE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
