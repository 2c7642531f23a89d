"""The child process of a submitted policy: a new interpreter that inherits nothing but one end of a channel."""

import importlib.util
import json
import os
import shutil
import signal
import site
import socket
import subprocess
import sys
import sysconfig
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fedbandit_envs.leaderboard.sandbox.kernels import lend
from fedbandit_envs.leaderboard.sandbox.source import Source

_INSIDE = "fedbandit_envs.leaderboard.sandbox.inside"
_FLOORS = (
    "fedbandit_envs",
    "fedbandit_envs.wrappers",
    "fedbandit_envs.baselines",
    "fedbandit_envs.leaderboard",
)
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/proc/cpuinfo",
           "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu")  # fmt: skip
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_SECONDS_TO_DIE = 2.0
_ENDINGS = {
    signal.SIGXCPU: " (all of its CPU time is used up)",
    signal.SIGKILL: " (perhaps out of memory or CPU time)",
}


class SandboxProcess:
    """A running child process.

    Attributes:
        end: The parent's end of the channel.
    """

    def __init__(
        self, source: Source, settings: Mapping[str, Any], memory_bytes: int, cpu_seconds: int
    ) -> None:
        """Starts the process, which sends a message when it is ready.

        Args:
            source: Place of the policy's code.
            settings: Keyword arguments that make the policy.
            memory_bytes: Limit of its address space.
            cpu_seconds: CPU time after which the kernel ends it.

        Raises:
            OSError: The system cannot start another process.
            ModuleNotFoundError: The entry point's module does not exist.
        """
        # The folders of this package, without the checkout that they may lie in.
        specs = [importlib.util.find_spec(floor) for floor in _FLOORS]
        packages = [str(path) for spec in specs if spec for path in spec.submodule_search_locations or ()]
        cache = os.environ.get("NUMBA_CACHE_DIR")
        python = [*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, *site.getsitepackages()]
        readable = {*source.roots(), *packages, *python, *_SYSTEM, *([cache] if cache else [])}
        folder = tempfile.mkdtemp(prefix="fedbandit-entry-")
        self.end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            lend(packages, folder)
            arguments = {
                "descriptor": theirs.fileno(), "parent": os.getpid(), "source": asdict(source.lent(folder)),
                "settings": dict(settings), "memory_bytes": memory_bytes,
                "cpu_seconds": cpu_seconds, "readable": sorted(readable),
            }  # fmt: skip
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", _INSIDE, json.dumps(arguments)],
                pass_fds=[theirs.fileno()],
                cwd=folder,
                env={
                    "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder,
                    "NUMBA_CACHE_DIR": folder, "MPLCONFIGDIR": folder, **dict.fromkeys(_THREADS, "1"),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            self.end.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            theirs.close()
        self._end_it = weakref.finalize(self, _end, self._process, self.end, folder)

    def ending(self) -> str:
        """Ends the process, if it has not ended by itself, and returns how it ended."""
        try:
            code = self._process.wait(_SECONDS_TO_DIE)
        except subprocess.TimeoutExpired:
            return "it has closed its channel"
        finally:
            self.close()
        if code >= 0:
            return f"its process has exited with code {code}"
        reason = signal.Signals(-code)
        return f"its process was ended by {reason.name}{_ENDINGS.get(reason, '')}"

    def close(self) -> None:
        """Ends the process, and removes its folder; may be called again."""
        self._end_it()


def _end(process: subprocess.Popen, end: socket.socket, folder: str) -> None:
    end.close()
    if process.poll() is None:
        process.kill()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)
