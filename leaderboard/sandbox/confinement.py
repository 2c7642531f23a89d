"""Confinement of a process by the Linux kernel, for the rest of its life.

A confined process can open only listed files, start no other process, send no signals, and neither see other processes
nor leave a trace that they see. This uses Landlock, seccomp and namespaces, which need no privilege and no additional
program. The confinement of files needs Linux 5.13, that of signals Linux 6.12, the filter of system calls an x86-64
processor, and namespaces must be allowed; otherwise that part is left out. The process reports which parts are in
force.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Sequence
from pathlib import Path

from fedbandit_envs.leaderboard.sandbox.namespaces import die_with_parent, enter_namespaces
from fedbandit_envs.leaderboard.sandbox.parts import (
    FILES,
    PROCESSES,
    SIGNALS,
    SYSTEM_CALLS,
    TIMES,
    TRUNCATION,
)
from fedbandit_envs.leaderboard.sandbox.system_calls import filter_system_calls

_SET_NO_NEW_PRIVS = 38
_CAPABILITIES_VERSION_3 = 0x20080522
# Numbers of system calls and of access rights of the kernel's Landlock interface; see landlock(7).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS = (1 << 1) | _READ_FILE | (1 << 14)
# By version of Landlock: the number of rights over files that the kernel knows. Later versions add no further ones that
# are used here.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_SCOPED = 0b11
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")

_libc = ctypes.CDLL(None, use_errno=True)


def confine(parent: int, readable: Sequence[str], writable: str) -> list[str]:
    """Confines this process, which must have only one thread, for the rest of its life.

    Args:
        parent: Id of the parent process; the kernel ends this process when the parent ends.
        readable: Files and folders that may be read; other files cannot be opened.
        writable: The only folder in which files may be created and written.

    Returns:
        The parts of confinement that are in force from now on.

    Raises:
        RuntimeError: The process has other threads, which would not be confined.
        OSError: The kernel refuses to confine the process.
    """
    if (threads := len(os.listdir("/proc/self/task"))) != 1:
        raise RuntimeError(f"{threads} threads run before confinement; one is required")
    die_with_parent()
    if os.getppid() != parent:
        os._exit(0)
    holds = [PROCESSES, TIMES] if enter_namespaces(readable, _DEVICES, writable) else []
    _checked(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _drop_capabilities()
    version = _confine_files(readable, writable)
    if version >= 1:
        holds.append(FILES)
    if version >= 6:
        holds.append(SIGNALS)
    filtered = platform.machine() == "x86_64"
    if filtered:
        filter_system_calls()
        holds.append(SYSTEM_CALLS)
    # By Landlock from version 3 on, or by the filter.
    if filtered or version >= 3:
        holds.append(TRUNCATION)
    return holds


def _drop_capabilities() -> None:
    """Gives up all privileges ("capabilities") of a process of root, with which it could lift its own limits."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()))


def _confine_files(readable: Sequence[str], writable: str) -> int:
    """Confines this process to listed files by Landlock; returns Landlock's version, below 1 if there is none."""
    version = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return version
    everything = (1 << _RIGHTS[min(version, max(_RIGHTS))]) - 1
    # The struct that the kernel expects: rights over files, rights over the network, and scopes (such as signals).
    rules = struct.pack("QQQ", everything, 0b11 if version >= 4 else 0, _SCOPED if version >= 6 else 0)
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0))
    rights = dict.fromkeys(readable, _READ_FILE | _READ_DIR)
    rights |= {**dict.fromkeys(_DEVICES, _FILE_RIGHTS), writable: everything}
    try:
        for path, allowed in rights.items():
            _allow(ruleset, path, allowed & everything)
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = struct.pack("=Qi", rights if Path(path).is_dir() else rights & _FILE_RIGHTS, descriptor)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
