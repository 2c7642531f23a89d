"""A seccomp filter of system calls: no new processes or programs, no network, nothing that concerns other processes."""

import ctypes
import errno
import os
import platform

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


def restrict(libc: ctypes.CDLL) -> bool:
    """Installs the filter for this thread and those that it starts; refused calls raise ``PermissionError``.

    Returns:
        Whether there is a filter for this machine.

    Raises:
        OSError: The kernel refuses.
    """
    if platform.machine() != "x86_64":
        return False
    instructions = _program(os.getpid())
    filters = (_Filter * len(instructions))(*(_Filter(*one) for one in instructions))
    program = _Program(len(instructions), filters)
    if libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return True
