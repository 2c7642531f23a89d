"""Confinement of a process by the Linux kernel, for the rest of its life.

A confined process can open only listed files, start no other process, and send no signals. This uses Landlock and
seccomp, which need no privilege and no additional program. The confinement of files needs Linux 5.13, that of signals
Linux 6.12, and the filter of system calls an x86-64 processor; otherwise that part is left out. The process reports
which parts are in force.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
from collections.abc import Iterable
from pathlib import Path

FILES, SIGNALS, SYSTEM_CALLS = "files", "signals", "system calls"
"""The parts of confinement: only listed files can be opened; no signals can be sent; system calls are filtered."""

PARTS = (FILES, SIGNALS, SYSTEM_CALLS)
"""All parts of confinement that a kernel may enforce."""

_SET_PDEATHSIG, _SET_NO_NEW_PRIVS = 1, 38
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

# Constants for the filter of system calls; see seccomp(2).
_SET_SECCOMP, _FILTER = 22, 2
_ARCHITECTURE = 0xC000003E
_FIRST_X32 = 0x40000000
_CLONE_THREAD = 0x10000

# System calls that are refused, with their numbers on x86-64.
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
# System calls whose first argument is a process; they are allowed only if that is the calling process itself.
_OF_ITSELF = {"kill": 62, "tgkill": 234, "prlimit64": 302, "sched_setaffinity": 203}
_CLONE, _CLONE3, _PRCTL = 56, 435, 157
# The prctl option PR_SET_PDEATHSIG is refused: a policy could use it to outlive the parent process.
_PRCTL_REFUSED = 1

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENT_AT = 0, 4, 16
_ALLOW = (_RETURN, 0, 0, 0x7FFF0000)
_REFUSE = (_RETURN, 0, 0, 0x00050000 | errno.EPERM)
_UNKNOWN = (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)

_Instruction = tuple[int, int, int, int]

_libc = ctypes.CDLL(None, use_errno=True)


def confine(parent: int, readable: Iterable[str], writable: str) -> list[str]:
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
    """Gives up all privileges ("capabilities") of a process of root, with which it could lift its own limits."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()))


def _confine_files(readable: Iterable[str], writable: str) -> list[str]:
    version = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return []
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
    return [FILES, SIGNALS] if version >= 6 else [FILES]


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


def _where(number: int, *then: _Instruction) -> list[_Instruction]:
    """Returns filter instructions that are executed only for the system call of one number.

    Args:
        number: Number of the system call.
        *then: The instructions; for other system calls they are skipped.
    """
    return [(_EQUAL, 0, len(then), number), *then]


def _program(process: int) -> list[_Instruction]:
    """Returns the program by which the kernel decides which system calls of a process are allowed.

    An instruction is a tuple of four numbers: operation, number of instructions to skip if its test is true, number to
    skip if it is false, and operand.

    Args:
        process: Id of the process. System calls of :data:`_OF_ITSELF` are allowed if this is their first argument.
    """
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, _ARCHITECTURE), _REFUSE,
        (_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _FIRST_X32), _REFUSE,
    ]  # fmt: skip
    argument = (_LOAD, 0, 0, _ARGUMENT_AT)
    instructions += _where(_CLONE, argument, (_ANY_BIT, 1, 0, _CLONE_THREAD), _REFUSE, _ALLOW)
    # clone3 could start a process as well as a thread, and a filter cannot tell which, since its flags are in memory.
    # It is reported as not existing, on which libraries use clone.
    instructions += _where(_CLONE3, _UNKNOWN)
    instructions += _where(_PRCTL, argument, (_EQUAL, 0, 1, _PRCTL_REFUSED), _REFUSE, _ALLOW)
    for number in _OF_ITSELF.values():
        instructions += _where(number, argument, (_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, process), _REFUSE, _ALLOW)
    for number in _REFUSED.values():
        instructions += _where(number, _REFUSE)
    return [*instructions, _ALLOW]


def _filter_system_calls() -> None:
    """Installs the filter of system calls for this thread and all threads that it will start.

    A system call that is refused fails with EPERM, which Python raises as ``PermissionError``.
    """
    instructions = [struct.pack("HBBI", *one) for one in _program(os.getpid())]
    filters = ctypes.create_string_buffer(b"".join(instructions))
    program = struct.pack("HP", len(instructions), ctypes.addressof(filters))
    _checked(_libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0))


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
