"""Entries that leave something behind, or signal to other processes of the same user: none can.

Each attempt is made twice, in a process without confinement first, where it succeeds.
"""

import json
import os
import re
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest
from entries import ROWS

from fedbandit_envs import arms_v0
from fedbandit_envs.leaderboard.sandbox import EntryError, SandboxedPolicy
from fedbandit_envs.leaderboard.sandbox.parts import (
    FILES,
    PARTS,
    PROCESSES,
    SYSTEM_CALLS,
    TIMES,
    TRUNCATION,
)

# What is tried, with the part of confinement that refuses it. `own` is a file of the user that the entry may read;
# `record` is one that it may not; `opened` is `own`, opened for reading.
ATTEMPTS = {
    "os.chmod(record, 0)": SYSTEM_CALLS,
    "os.chmod(record, 0o666)": SYSTEM_CALLS,
    "os.chmod(own, 0o4755)": SYSTEM_CALLS,
    "os.fchmod(opened, 0o600)": SYSTEM_CALLS,
    "os.close(os.open('file', os.O_CREAT | os.O_WRONLY, 0o4755))": SYSTEM_CALLS,
    "os.close(os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o2755))": SYSTEM_CALLS,
    "os.mkdir('folder', 0o1755)": SYSTEM_CALLS,
    "os.chown(record, os.getuid(), os.getgid())": SYSTEM_CALLS,
    "os.fchown(opened, os.getuid(), os.getgid())": SYSTEM_CALLS,
    "os.utime(record, (1, 2))": SYSTEM_CALLS,
    "os.utime(opened, (1, 2))": SYSTEM_CALLS,
    "os.setxattr(record, 'user.memory', b'1')": SYSTEM_CALLS,
    "os.getxattr(record, 'user.memory')": SYSTEM_CALLS,
    "os.setxattr(opened, 'user.memory', b'1')": SYSTEM_CALLS,
    "os.removexattr(record, 'user.memory')": SYSTEM_CALLS,
    "fcntl.flock(opened, fcntl.LOCK_SH)": SYSTEM_CALLS,
    "fcntl.lockf(opened, fcntl.LOCK_SH, 1, 77)": SYSTEM_CALLS,
    "fcntl.fcntl(opened, fcntl.F_GETLK, struct.pack('hhqqi', 0, 0, 7, 1, 0))": SYSTEM_CALLS,
    "fcntl.fcntl(opened, F_OFD_SETLK, struct.pack('hhqqi', 0, 0, 7, 1, 0))": SYSTEM_CALLS,
    "fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)": SYSTEM_CALLS,
    "fcntl.fcntl(opened, fcntl.F_SETOWN, os.getpid())": SYSTEM_CALLS,
    "fcntl.fcntl(opened, fcntl.F_SETSIG, 0)": SYSTEM_CALLS,
    "fcntl.fcntl(os.open('.', os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_MODIFY)": SYSTEM_CALLS,
    "fcntl.ioctl(opened, FS_IOC_GETFLAGS, bytearray(8))": SYSTEM_CALLS,
    "checked(libc.inotify_init())": SYSTEM_CALLS,
    "checked(libc.msgget(IPC_PRIVATE, 0o600))": SYSTEM_CALLS,
    "checked(libc.semget(IPC_PRIVATE, 1, 0o600))": SYSTEM_CALLS,
    "checked(libc.shmget(IPC_PRIVATE, 4096, 0o600))": SYSTEM_CALLS,
    "checked(libc.syscall(MQ_OPEN, b'fedbandit-test', 0o102, 0o600, None))": SYSTEM_CALLS,
    "checked(libc.syscall(ADD_KEY, b'user', b'fedbandit', b'1', ctypes.c_size_t(1), -1))": SYSTEM_CALLS,
    "os.close(os.memfd_create('memory'))": SYSTEM_CALLS,
    "os.pipe()": SYSTEM_CALLS,
    "socket.socket(socket.AF_UNIX)": SYSTEM_CALLS,
    "socket.socketpair()": SYSTEM_CALLS,
    "select.epoll()": SYSTEM_CALLS,
    "os.mkfifo('fifo')": SYSTEM_CALLS,
    "os.link(own, own + '2')": SYSTEM_CALLS,
    "os.statvfs('.')": SYSTEM_CALLS,
    "checked(libc.sysinfo(ctypes.create_string_buffer(400)))": SYSTEM_CALLS,
    "checked(libc.mincore(page, 1, ctypes.create_string_buffer(1)))": SYSTEM_CALLS,
    "os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)": SYSTEM_CALLS,
    "mmap.mmap(-1, 4096).madvise(MADV_PAGEOUT)": SYSTEM_CALLS,
    "os.preadv(opened, [bytearray(1)], 0, RWF_NOWAIT)": SYSTEM_CALLS,
    "time.clock_gettime(~other << 3 | 2)": SYSTEM_CALLS,
    "os.getpriority(os.PRIO_PROCESS, other)": SYSTEM_CALLS,
    "os.setpriority(os.PRIO_PROCESS, 0, 10)": SYSTEM_CALLS,
    "os.sched_getaffinity(other)": SYSTEM_CALLS,
    "os.sched_setaffinity(other, os.sched_getaffinity(0))": SYSTEM_CALLS,
    "os.getpgid(other)": SYSTEM_CALLS,
    "os.kill(other, 0)": SYSTEM_CALLS,
    "os.kill(0, 0)": SYSTEM_CALLS,
    "checked(libc.unshare(CLONE_NEWUSER))": SYSTEM_CALLS,
    "checked(libc.syscall(PERF_EVENT_OPEN, (ctypes.c_uint32 * 32)(1, 112), 0, -1, -1, 0))": SYSTEM_CALLS,
    "checked(libc.syscall(FUTEX, mapped(own), FUTEX_WAKE, 1, None, None, 0))": SYSTEM_CALLS,
    "wait_at(mapped(own))": SYSTEM_CALLS,
    "checked(libc.syscall(SET_TID_ADDRESS, mapped(own)))": SYSTEM_CALLS,
    "one, other_one = socket.socketpair(); socket.send_fds(one, [b'x'], [opened])": SYSTEM_CALLS,
    "queue_a_signal()": SYSTEM_CALLS,
    "os.truncate(record, 0)": TRUNCATION,
    "os.close(os.open(own, os.O_RDONLY | os.O_TRUNC))": TRUNCATION,
    "open('/proc/meminfo').close()": FILES,
    "open('/proc/stat').close()": FILES,
    "os.listdir('/sys/devices/system/cpu')": FILES,
    "os.stat(record)": PROCESSES,
    "os.stat(f'/proc/{other}')": PROCESSES,
    "checked(99 - threading.get_native_id())": PROCESSES,
    "checked(99 - os.getpid())": PROCESSES,
    "checked(10**6 - os.stat('.').st_ino)": PROCESSES,
    "read_and_compare_times(own)": TIMES,
}
# These numbers show how many processes and files the machine has made; they fail where they are small.
COUNTS = {attempt for attempt in ATTEMPTS if " - " in attempt}
# A machine may refuse these to everybody, as most containers do, or record no times at all.
MAY_FAIL = re.compile(
    "xattr|MQ_OPEN|ADD_KEY|PERF|NEWUSER|memfd|RWF_NOWAIT|times|FS_IOC|F_SETLEASE|st_ino|sys/devices"
)

TRYING = """
import numpy as np
import ctypes, errno, fcntl, json, mmap, os, select, signal, socket, struct, threading, time

F_OFD_SETLK, FS_IOC_GETFLAGS, IPC_PRIVATE, MQ_OPEN, ADD_KEY, MADV_PAGEOUT = 37, 0x80086601, 0, 240, 248, 21
RWF_NOWAIT, CLONE_NEWUSER, PERF_EVENT_OPEN = 8, 0x10000000, 298
FUTEX, FUTEX_WAIT, FUTEX_WAKE, SET_TID_ADDRESS = 202, 0, 1, 218
maps = []
libc = ctypes.CDLL(None, use_errno=True)

def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno() or errno.EPERM, "refused")

def mapped(path):
    with open(path, "rb") as file:
        maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return ctypes.c_void_p(np.frombuffer(maps[-1], np.uint8).ctypes.data & -4096)

def wait_at(address):
    "Waits for other processes at a page of a file, for a moment."
    value = ctypes.c_uint32.from_address(address.value).value
    libc.syscall(FUTEX, address, FUTEX_WAIT, value, (ctypes.c_long * 2)(0, 1000), None, 0)
    if ctypes.get_errno() != errno.ETIMEDOUT:
        raise OSError(errno.EPERM, "refused")

def queue_a_signal():
    "A signal that waits: those of all processes of a user are counted together."
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN + 1])
    signal.pthread_kill(threading.get_ident(), signal.SIGRTMIN + 1)
    if not signal.sigpending():
        raise OSError(errno.EPERM, "refused")

def read_and_compare_times(path):
    before = os.stat(path).st_atime_ns
    with open(path) as file:
        file.read()
    if os.stat(path).st_atime_ns == before:
        raise OSError(errno.EPERM, "not recorded")

def failures(attempts, own, record, other):
    "Makes all attempts, and returns the names of their errors, empty for those that succeed."
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    names = dict(globals(), own=own, record=record, other=other, opened=os.open(own, os.O_RDONLY))
    names["page"] = ctypes.c_void_p(id(libc) & -4096)
    errors = []
    for attempt in attempts:
        try:
            exec(attempt, names)
            errors.append("")
        except OSError as error:
            errors.append(errno.errorcode[error.errno])
    return errors
"""
POLICY = """
class Tries:
    def __init__(self, **given):
        self.given = given

    def reset(self, spec, seeds):
        raise LookupError(json.dumps(failures(**self.given)))

    def act(self, observation):
        return None
"""


@pytest.fixture
def tries(tmp_path, monkeypatch):
    """The arguments of the attempts, and the entry that makes them, which is a package of two files."""
    package = tmp_path / "entries_that_try" / "tries"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(TRYING + POLICY)
    # A child may read compiled kernels where they are, and copies of its own code only.
    (kernels := tmp_path / "kernels").mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(kernels))
    for path in (own := kernels / "data.txt", record := tmp_path / "record.jsonl"):
        path.write_text("x" * 100)
    monkeypatch.syspath_prepend(package.parent)
    return {"own": str(own), "record": str(record), "other": os.getpid()}


def test_each_attempt_succeeds_without_confinement(tries, tmp_path):
    attempts = [one for one in ATTEMPTS if one not in COUNTS]
    code = TRYING + f"print(json.dumps(failures({attempts!r}, **json.loads({json.dumps(tries)!r}))))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    errors = zip(attempts, json.loads(done.stdout), strict=True)
    assert not [attempt for attempt, error in errors if error and not MAY_FAIL.search(attempt)]
    assert os.stat(tries["record"]).st_size == os.stat(tries["own"]).st_size == 0


def in_a_child(**settings):
    """Makes attempts in a child process; returns the errors of those that failed, and the parts of confinement."""
    with SandboxedPolicy("tries:Tries", settings=settings) as policy, pytest.raises(EntryError) as error:
        policy.reset(arms_v0.parallel_env().policy_spec, np.zeros(ROWS, np.uint64))
    return json.loads(str(error.value).partition("LookupError: ")[2]), policy.confined


def test_no_attempt_succeeds_in_a_child(tries, monkeypatch, nursery):
    with monkeypatch.context() as forked:
        forked.setattr("fedbandit_envs.leaderboard.sandbox.process.subprocess", nursery)
        _, held = in_a_child(**tries, attempts=[])
    attempts = {attempt: part for attempt, part in ATTEMPTS.items() if part in held}
    answers, parts = in_a_child(**tries, attempts=list(attempts))
    assert parts == held
    errors = dict(zip(attempts, answers, strict=True))
    # The counts are small in a private namespace, which is why these attempts are the ones that succeed.
    assert {attempt for attempt, error in errors.items() if not error} == COUNTS & set(attempts)
    for attempt, part in attempts.items():
        if part == SYSTEM_CALLS:
            assert errors[attempt] in ("EPERM", "ENOTSUP", "EAGAIN"), attempt
    for path in (tries["own"], tries["record"]):
        state = os.stat(path)
        assert (state.st_size, state.st_mode & 0o7777, state.st_nlink) == (100, 0o644, 1)
        assert state.st_mtime > 2
    if missing := set(PARTS) - set(held):
        pytest.skip(f"this kernel does not confine {sorted(missing)}; all else is refused")


def test_results_may_name_every_part():
    schema = json.loads(files("fedbandit_envs.leaderboard").joinpath("result.schema.json").read_text())
    (array, _) = schema["$defs"]["task"]["properties"]["confined"]["anyOf"]
    assert array["items"]["enum"] == list(PARTS)
