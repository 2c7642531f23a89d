"""Confinement of a process by the Linux kernel, for the rest of its life: no other files, children, or signals.

It uses Landlock and seccomp, which need no privilege and no program. Where a kernel is older than Linux 5.13 (files) or
6.12 (signals), or the machine is not an x86-64 (system calls), that part is left out; the process reports which parts
hold.
"""

import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from fedbandit_envs.leaderboard.sandbox import system_calls

FILES, SIGNALS, SYSTEM_CALLS = "files", "signals", "system calls"
"""Parts of confinement: only listed files can be opened, no signals sent, only harmless system calls made."""

PARTS = (FILES, SIGNALS, SYSTEM_CALLS)
"""All parts."""

_SET_PDEATHSIG, _SET_NO_NEW_PRIVS = 1, 38
_CAPABILITIES_VERSION_3 = 0x20080522
# See landlock(7).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS = (1 << 1) | _READ_FILE | (1 << 14)
# Number of rights over files that each version of Landlock knows; later versions add none that are used here.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_SCOPED = 0b11
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")

_libc = ctypes.CDLL(None, use_errno=True)


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def confine(parent: int, readable: Iterable[str], writable: str) -> list[str]:
    """Confines this process, which must have only one thread, for the rest of its life.

    Args:
        parent: Id of the process with whose end this one must end.
        readable: Files and folders that may be read; others cannot be opened.
        writable: The only folder in which files may be created and written.

    Returns:
        The parts that hold.

    Raises:
        RuntimeError: There are other threads, which would not be confined.
        OSError: The kernel refuses.
    """
    if (threads := len(os.listdir("/proc/self/task"))) != 1:
        raise RuntimeError(f"{threads} threads run before confinement; one is required")
    _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    _checked(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _drop_capabilities()
    holds = _confine_files(readable, writable)
    if system_calls.restrict(_libc):
        holds.append(SYSTEM_CALLS)
    return holds


def _drop_capabilities() -> None:
    """Gives up the capabilities of root, with which limits could be lifted."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()))


def _confine_files(readable: Iterable[str], writable: str) -> list[str]:
    version = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return []
    everything = (1 << _RIGHTS[min(version, max(_RIGHTS))]) - 1
    rules = _Rules(everything, 0b11 if version >= 4 else 0, _SCOPED if version >= 6 else 0)
    ruleset = _checked(
        _libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    )
    try:
        for path in readable:
            _allow(ruleset, path, (_READ_FILE | _READ_DIR) & everything)
        for path in _DEVICES:
            _allow(ruleset, path, _FILE_RIGHTS & everything)
        _allow(ruleset, writable, everything)
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return [FILES, SIGNALS] if version >= 6 else [FILES]


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = _PathBeneath(rights if Path(path).is_dir() else rights & _FILE_RIGHTS, descriptor)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
