"""Children of the sandbox that begin as forks of one interpreter, which has loaded the sandbox's modules once."""

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

_MOST_BYTES, _MOST_DESCRIPTORS = 1 << 16, 256
_SET_CHILD_SUBREAPER = 36


class Nursery:
    """Makes children in place of :class:`subprocess.Popen`; they do all that the sandbox's do from their first line on.

    A child has the arguments, variables, folder and channel that it would have, and the same parent: this process. What
    it has not is an interpreter of its own from the start. That a new one inherits nothing is for other tests.

    Attributes:
        before: Code that children run before all else.
    """

    DEVNULL, TimeoutExpired = subprocess.DEVNULL, subprocess.TimeoutExpired

    def __init__(self):
        self.before = ""
        self._end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._mother = subprocess.Popen(
                [sys.executable, "-I", "-B", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def Popen(self, arguments, *, pass_fds, cwd, env, **streams):
        (descriptor,) = pass_fds
        told = {"parent": os.getpid(), "argument": arguments[-1], "descriptor": descriptor,
                "folder": cwd, "variables": env, "before": self.before}  # fmt: skip
        # A process whose parent ends gets this one as its parent, as its children's children are orphans at once.
        _set_subreaper(True)
        try:
            socket.send_fds(self._end, [json.dumps(told).encode()], [descriptor])
            return _Child(int(self._end.recv(_MOST_BYTES)))
        finally:
            _set_subreaper(False)

    def close(self):
        self._end.close()
        self._mother.wait()


class _Child:
    """What the sandbox uses of a :class:`subprocess.Popen`."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None
        self._ended = os.pidfd_open(pid)

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("", timeout)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._ended)
        return self.returncode

    def poll(self):
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)

    def terminate(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _set_subreaper(on):
    if ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, int(on), 0, 0, 0):
        raise OSError("the kernel lets no process adopt others")


def _make_children(end):
    """Makes children until the other end of the channel is closed."""
    from fedbandit_envs.leaderboard.sandbox import inside

    while True:
        message, descriptors, _, _ = socket.recv_fds(end, _MOST_BYTES, 1)
        if not message:
            return
        if between := os.fork():
            os.waitpid(between, 0)
            os.close(descriptors[0])
        elif os.fork():
            os._exit(0)
        else:
            _begin(inside.main, end, json.loads(message), descriptors[0])


def _begin(main, end, told, channel):
    """Does what starts a process, and then what the process does."""
    while os.getppid() != told["parent"]:
        time.sleep(0.0005)
    os.setsid()
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["variables"])
    end.send(str(os.getpid()).encode())
    own = told["descriptor"]
    os.dup2(channel, own)
    os.closerange(3, own)
    os.closerange(own + 1, _MOST_DESCRIPTORS)
    sys.argv[1:] = [told["argument"]]
    exec(told["before"], {})
    main()


if __name__ == "__main__":
    _make_children(socket.socket(fileno=int(sys.argv[1])))
