"""The filter of system calls of a confined process: a list of those that are allowed, on x86-64 Linux.

Allowed is what Python, NumPy, SciPy, Numba (with its compiler and cache) and PyTorch on a CPU need, with threads. All
other system calls fail with EPERM, which Python raises as ``PermissionError``. Left out on purpose are those by which
processes of one user can signal to each other or leave something behind: locks, leases, owners and notifications of
files; changes of a file's permissions, owner, times and attributes; queues, semaphores and shared memory with names;
pipes (the kernel limits their total size per user); the load of the machine and the free space of its disks; what
the kernel holds in its cache of files; and all that tells about another process.
"""

import ctypes
import errno
import os
import struct

# Numbers of system calls on x86-64 that are allowed whatever their arguments are.
_ALLOWED = {
    # Files and folders. Which ones can be opened is for Landlock to decide.
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "pread64": 17,
    "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "select": 23, "dup": 32, "dup2": 33, "sendfile": 40,
    "fsync": 74, "fdatasync": 75, "ftruncate": 77, "getdents": 78, "getcwd": 79, "chdir": 80, "fchdir": 81,
    "rename": 82, "rmdir": 84, "unlink": 87, "symlink": 88, "readlink": 89, "umask": 95, "getdents64": 217,
    "newfstatat": 262, "unlinkat": 263, "renameat": 264, "symlinkat": 266, "readlinkat": 267, "faccessat": 269,
    "pselect6": 270, "ppoll": 271, "fallocate": 285, "dup3": 292, "preadv": 295, "pwritev": 296, "renameat2": 316,
    "statx": 332, "close_range": 436, "faccessat2": 439,
    # The channel to the parent process.
    "sendto": 44, "recvfrom": 45, "recvmsg": 47,
    # Memory.
    "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25, "msync": 26,
    # Threads, signals to itself, and its own end.
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24, "pause": 34, "exit": 60,
    "rt_sigpending": 127, "rt_sigtimedwait": 128, "rt_sigsuspend": 130, "sigaltstack": 131,
    "restart_syscall": 219, "exit_group": 231, "set_robust_list": 273, "rseq": 334,
    # What it is, its own limits, time, and random numbers.
    "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "uname": 63, "gettimeofday": 96,
    "getrlimit": 97, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108,
    "getppid": 110, "getgroups": 115, "getresuid": 118, "getresgid": 120, "capget": 125, "sched_get_priority_max": 146,
    "sched_get_priority_min": 147, "setrlimit": 160, "gettid": 186, "time": 201, "getcpu": 309, "getrandom": 318,
}  # fmt: skip

# System calls that are allowed if one of their arguments has one of these values. First the number of the system call
# on x86-64, then the position of the argument (from 0), then the values.
_ALLOWED_VALUES = {
    # Duplicates of descriptors, their flags, and the seals of shared memory; no locks, leases, owners and signals.
    "fcntl": (72, 1, (0, 1, 2, 3, 4, 1030, 1034)),
    # Whether a descriptor is a terminal, its window, closing on exec, blocking, and the number of bytes to read.
    "ioctl": (16, 1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    # Hints about memory of its own; not those by which pages leave the kernel's cache of files, or are merged.
    "madvise": (28, 2, (0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17)),
    # Names of threads and of memory, and queries.
    "prctl": (157, 0, (3, 15, 16, 21, 23, 39, 42, 0x53564D41)),
    # Threads as the GNU and musl C libraries start them; these flags start no process.
    "clone": (56, 0, (0x3D0F00, 0x7D0F00)),
    # Clocks with a name; all others are those of a process or thread, of another process too.
    "clock_gettime": (228, 0, tuple(range(12))),
    "clock_getres": (229, 0, tuple(range(12))),
    "clock_nanosleep": (230, 0, tuple(range(12))),
    # Only of the calling thread.
    "prlimit64": (302, 0, (0,)),
    "sched_setaffinity": (203, 0, (0,)),
    "sched_getaffinity": (204, 0, (0,)),
    "sched_getparam": (143, 0, (0,)),
    "sched_getscheduler": (145, 0, (0,)),
}
# System calls whose first argument is a process; they are allowed if that is the calling process, by its own id.
_OF_ITSELF = {"kill": 62, "tgkill": 234, "prlimit64": 302, "sched_setaffinity": 203, "sched_getaffinity": 204}
# System calls that may create a file or folder: number, position of the flags (None without), position of the mode.
_CREATING = {
    "open": (2, 1, 2), "openat": (257, 2, 3), "creat": (85, None, 1), "mkdir": (83, None, 1), "mkdirat": (258, None, 2),
}  # fmt: skip
# Threads wait for each other by futex(2). Without the flag "private", one may wait at a page of a file that others may
# read, too, and be woken by them. Such a wait is answered like one that has ended at once: the C library, which waits
# like this for the end of a thread, then asks again.
_FUTEX, _PRIVATE, _WAITS = 202, 128, (0, 9, 9 | 256)
# Pages of a large size are taken from a supply that all processes share.
_MMAP, _LARGE_PAGES = 9, 0x40000
# Bits of a mode that let others run a file as its owner or group, and the bit that keeps a file's name.
_SPECIAL_MODES = 0o7000
# Flags of open(2): to create a file, with or without a name; to truncate it; to write to it.
_CREATE, _TRUNCATE, _ANY_WRITING = 0o20000100, 0o1000, 0b11
# Extended attributes of files: reported as not supported, which libraries that copy files accept.
_FIRST_ATTRIBUTE, _LAST_ATTRIBUTE = 188, 199
# System calls from this number on are reported as unknown, as an older kernel does, so that the C library uses others;
# clone3 (435), whose flags are in memory where no filter can read them, is one of them.
_FIRST_RECENT = 424

_ARCHITECTURE = 0xC000003E
_FIRST_X32 = 0x40000000
_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16

_Instruction = tuple[int, int, int, int]

_ALLOW = (_RETURN, 0, 0, 0x7FFF0000)


def _refusal(error: int) -> _Instruction:
    return (_RETURN, 0, 0, 0x00050000 | error)


_REFUSE = _refusal(errno.EPERM)


def _argument(position: int) -> _Instruction:
    return (_LOAD, 0, 0, _FIRST_ARGUMENT_AT + 8 * position)


def _where(number: int, *then: _Instruction) -> list[_Instruction]:
    """Returns filter instructions that are executed only for the system call of one number.

    Args:
        number: Number of the system call.
        *then: The instructions, of which the last returns; for other system calls they are skipped.
    """
    return [(_EQUAL, 0, len(then), number), *then]


def program(process: int) -> list[_Instruction]:
    """Returns the program by which the kernel decides which system calls of a process are allowed.

    An instruction is a tuple of four numbers: operation, number of instructions to skip if its test is true, number to
    skip if it is false, and operand. Tests of arguments see their lower 32 bits.

    Args:
        process: Id of the process, of which :data:`_OF_ITSELF` may be called.
    """
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, _ARCHITECTURE), _REFUSE,
        (_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _FIRST_X32), _REFUSE,
    ]  # fmt: skip
    for number in _ALLOWED.values():
        instructions += _where(number, _ALLOW)
    values = {number: (position, [*values]) for number, position, values in _ALLOWED_VALUES.values()}
    for number in _OF_ITSELF.values():
        values.setdefault(number, (0, []))[1].append(process)
    for number, (position, allowed) in values.items():
        tests = [test for value in allowed for test in ((_EQUAL, 0, 1, value), _ALLOW)]
        instructions += _where(number, _argument(position), *tests, _REFUSE)
    for number, flags, mode in _CREATING.values():
        tests = [_argument(mode), (_ANY_BIT, 0, 1, _SPECIAL_MODES), _REFUSE]
        if flags is not None:
            # The mode means nothing if no file is created. A file opened for reading may be truncated all the same,
            # and old versions of Landlock allow it.
            tests = [
                _argument(flags), (_ANY_BIT, 0, 2, _TRUNCATE), (_ANY_BIT, 1, 0, _ANY_WRITING), _REFUSE,
                (_ANY_BIT, 0, len(tests), _CREATE), *tests,
            ]  # fmt: skip
        instructions += _where(number, *tests, _ALLOW)
    again = _refusal(errno.EAGAIN)
    waits = [test for wait in _WAITS for test in ((_EQUAL, 0, 1, wait), again)]
    instructions += _where(_FUTEX, _argument(1), (_ANY_BIT, 0, 1, _PRIVATE), _ALLOW, *waits, _REFUSE)
    instructions += _where(_MMAP, _argument(3), (_ANY_BIT, 0, 1, _LARGE_PAGES), _REFUSE, _ALLOW)
    unsupported, unknown = _refusal(errno.ENOTSUP), _refusal(errno.ENOSYS)
    instructions += [
        (_AT_LEAST, 0, 1, _FIRST_RECENT),
        unknown,
        (_AT_LEAST, 0, 1, _LAST_ATTRIBUTE + 1),
        _REFUSE,
    ]
    return [*instructions, (_AT_LEAST, 0, 1, _FIRST_ATTRIBUTE), unsupported, _REFUSE]


def filter_system_calls() -> None:
    """Installs the filter for this thread and all threads that it will start; "no new privileges" must be set.

    Raises:
        OSError: The kernel refuses to install it.
    """
    instructions = [struct.pack("HBBI", *one) for one in program(os.getpid())]
    filters = ctypes.create_string_buffer(b"".join(instructions))
    header = struct.pack("HP", len(instructions), ctypes.addressof(filters))
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_SECCOMP, _FILTER, header, 0, 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
