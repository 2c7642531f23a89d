"""Confinement of a process by the Linux kernel, for the rest of its life: no other files, children, or signals.

It uses Landlock and seccomp, which need no privilege and no program. Where a kernel is older than Linux 5.13 (files) or
6.12 (signals), or the machine is not an x86-64 (system calls), that part is left out; the process reports which parts
hold.
"""

import ctypes
import errno
import os
import platform
import signal
from collections.abc import Iterable
from pathlib import Path

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

# What follows is for seccomp(2).
_SET_SECCOMP, _FILTER = 22, 2
_ARCHITECTURE = 0xC000003E
_FIRST_X32 = 0x40000000
_CLONE_THREAD = 0x10000

# Numbers of x86-64.
_REFUSED = {
    "socket": 41, "fork": 57, "vfork": 58, "execve": 59, "execveat": 322,
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "pidfd_send_signal": 424, "pidfd_open": 434, "pidfd_getfd": 438, "tkill": 200,
    "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "setpriority": 141, "ioprio_set": 251,
    "sched_setparam": 142, "sched_setscheduler": 144, "sched_setattr": 314,
    "memfd_create": 319, "memfd_secret": 447, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    "mount": 165, "unshare": 272, "setns": 308, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "io_uring_setup": 425, "add_key": 248, "request_key": 249, "keyctl": 250,
}  # fmt: skip
# Calls whose first argument is a process, which must be this one.
_OF_ITSELF = {"kill": 62, "tgkill": 234, "prlimit64": 302, "sched_setaffinity": 203}
_CLONE, _CLONE3, _PRCTL = 56, 435, 157
# PR_SET_PDEATHSIG, which ends this process with its parent, must not be changed.
_PRCTL_REFUSED = 1

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENT_AT = 0, 4, 16
_ALLOW = (_RETURN, 0, 0, 0x7FFF0000)
_REFUSE = (_RETURN, 0, 0, 0x00050000 | errno.EPERM)
_UNKNOWN = (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)

_Instruction = tuple[int, int, int, int]

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
    if platform.machine() == "x86_64":
        _filter_system_calls()
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


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_so", ctypes.c_uint8),
        ("if_not", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filters", ctypes.POINTER(_Filter)))


def _where(number: int, *then: _Instruction) -> list[_Instruction]:
    """Returns instructions that are executed if the call has this number, and skipped otherwise."""
    return [(_EQUAL, 0, len(then), number), *then]


def _program(process: int) -> list[_Instruction]:
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, _ARCHITECTURE), _REFUSE,
        (_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _FIRST_X32), _REFUSE,
    ]  # fmt: skip
    argument = (_LOAD, 0, 0, _ARGUMENT_AT)
    instructions += _where(_CLONE, argument, (_ANY_BIT, 1, 0, _CLONE_THREAD), _REFUSE, _ALLOW)
    # Its flags lie in memory, which no filter can read; libraries then use clone.
    instructions += _where(_CLONE3, _UNKNOWN)
    instructions += _where(_PRCTL, argument, (_EQUAL, 0, 1, _PRCTL_REFUSED), _REFUSE, _ALLOW)
    for number in _OF_ITSELF.values():
        instructions += _where(number, argument, (_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, process), _REFUSE, _ALLOW)
    for number in _REFUSED.values():
        instructions += _where(number, _REFUSE)
    return [*instructions, _ALLOW]


def _filter_system_calls() -> None:
    """Filters the calls of this thread and of those that it starts; refused calls raise ``PermissionError``."""
    instructions = _program(os.getpid())
    filters = (_Filter * len(instructions))(*(_Filter(*one) for one in instructions))
    program = _Program(len(instructions), filters)
    _checked(_libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0))


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
