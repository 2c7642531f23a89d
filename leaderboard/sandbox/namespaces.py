"""Linux namespaces, by which a process loses sight of all other processes and of all files but listed ones.

They need no privilege where the kernel lets users make namespaces (many systems do, most containers do not).
"""

import ctypes
import os
import select
import shutil
import signal
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

_SET_PDEATHSIG = 1
_NEW_MOUNTS, _NEW_PROCESSES = 0x00020000, 0x20000000
_NEW_USER, _NEW_MESSAGE_QUEUES = 0x10000000, 0x08000000
# Flags of mount(2) and umount2(2), and attributes of mount_setattr(2).
_RECURSIVE, _BIND, _PRIVATE, _DETACH = 1 << 14, 1 << 12, 1 << 18, 2
_MOUNT_SETATTR = 442
_READ_ONLY, _NO_SETUID = 1, 2
_HERE, _RECURSIVELY = -100, 0x8000
_LARGEST_FOLDER = "size=256m,nr_inodes=65536,mode=755"
"""Limits of the private file system: bytes and number of files in all that the process can write."""

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Makes the kernel end this process when its parent ends (the thread of it that has started this process)."""
    _checked(_libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def enter_namespaces(readable: Sequence[str], devices: Sequence[str], folder: str) -> bool:
    """Forks twice and returns in the grandchild, which sees no other processes and only listed files, read-only.

    A read-only mount also does not record when its files are read. A private copy in memory, which vanishes with the
    grandchild, replaces the folder. Of ``/proc`` the grandchild sees a copy of ``cpuinfo`` only.

    This process and its child wait, and end as the grandchild ends (:func:`_end_as`). The child is the first process of
    the new namespace, in which signals have no default effect. If this process gets SIGTERM, it ends the other two
    before itself. If it is killed, the kernel ends them.

    Args:
        readable: Files and folders that stay visible; those that do not exist are skipped.
        devices: Device files that stay visible.
        folder: The only folder that stays writable; it becomes the working directory.

    Returns:
        Whether the namespaces are in force. If False, a trial of all steps failed, most often because the kernel or the
        machine's administrator does not allow them, and this process continues as it was.

    Raises:
        OSError: The kernel refuses a step that has worked just before.
    """
    # A process in which only a part of the steps succeeded would be of no use: another one tries them first.
    if (trial := os.fork()) == 0:
        failed = True
        try:
            _leave(readable, devices, folder)
            failed = False
        finally:
            os._exit(failed)
    if os.waitpid(trial, 0)[1]:
        return False
    _leave(readable, devices, folder)
    # SIGTERM waits until its handler is there.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    # Time of a process that the kernel ends with its namespace would be counted nowhere. The first process therefore
    # asks the second to end, and the second ends and waits for the third.
    for ending in (signal.SIGTERM, signal.SIGKILL):
        parent = os.pidfd_open(os.getpid())
        if child := os.fork():
            _end_as(child, ending)
        die_with_parent()
        # If the parent has ended before this process asked to end with it, its descriptor is readable.
        if select.select([parent], [], [], 0)[0]:
            os._exit(0)
        os.close(parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    return True


def _leave(readable: Sequence[str], devices: Sequence[str], folder: str) -> None:
    """Moves this process into namespaces of its own and under a private root; its children also see no other processes.

    Raises:
        OSError: The kernel refuses a step.
    """
    user, group = os.geteuid(), os.getegid()
    _checked(_libc.unshare(_NEW_USER | _NEW_MOUNTS | _NEW_PROCESSES | _NEW_MESSAGE_QUEUES))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path("/proc/self", name).write_text(text)
    _make_private_root(readable, devices, folder)
    os.chdir(folder)


def _make_private_root(readable: Sequence[str], devices: Sequence[str], folder: str) -> None:
    # Nothing reads /proc any more, so that the new root can be put together there.
    root = "/proc"
    processors = Path("/proc/cpuinfo").read_text().splitlines(keepends=True)
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    _mount("tmpfs", root, "tmpfs", 0, _LARGEST_FOLDER)
    # PyTorch finds out here which instructions it can use. The present clock rate depends on the load.
    os.mkdir(f"{root}/proc")
    Path(f"{root}/proc/cpuinfo").write_text("".join(line for line in processors if "MHz" not in line))
    attributes = struct.pack("QQQQ", _READ_ONLY | _NO_SETUID, 0, 0, 0)
    # In this order, folders come before what is in them, which is then there already. The C library and others use
    # paths with and without symbolic links.
    for path in sorted({*readable, *map(os.path.realpath, readable), *devices}):
        if not os.path.exists(path) or os.path.exists(place := root + path):
            continue
        if os.path.isdir(path):
            os.makedirs(place)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            Path(place).touch()
        _mount(path, place, None, _BIND | _RECURSIVE)
        options = (_HERE, place.encode(), _RECURSIVELY, attributes, ctypes.c_size_t(len(attributes)))
        _checked(_libc.syscall(_MOUNT_SETATTR, *options))
    shutil.copytree(folder, root + folder, symlinks=True)
    os.chdir(root)
    _checked(_libc.pivot_root(b".", b"."))
    # The old root now lies over the new one.
    _checked(_libc.umount2(b".", _DETACH))


def _mount(what: str | None, place: str, kind: str | None, flags: int, options: str = "") -> None:
    named = [text and text.encode() for text in (what, place, kind)]
    _checked(_libc.mount(*named, ctypes.c_ulong(flags), options.encode()))


def _end_as(child: int, ending: signal.Signals) -> NoReturn:
    """Waits for a child process and ends this process as the child has ended; passes on SIGTERM as ``ending``.

    The exit code is that of the child, or 128 and the number of the signal that has ended it.
    """
    # Only the third process has the channel to the parent, which is closed when that process ends.
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, ending))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(128 - code if code < 0 else code)


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
