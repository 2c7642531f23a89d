"""The child process: confines itself, loads a policy, and lets it act until the parent closes the channel.

Once the policy's code is loaded, the parent trusts nothing that this process sends.
"""

import json
import os
import pickle
import resource
import socket
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numba.core.caching import Cache, _CacheLocator

from fedbandit_envs.leaderboard.sandbox import channel
from fedbandit_envs.leaderboard.sandbox.confinement import confine
from fedbandit_envs.leaderboard.sandbox.memory import Field, SharedMemory, bytes_for, fields_of
from fedbandit_envs.leaderboard.sandbox.source import Source

_LONGEST_REASON = 4000
_LARGEST_FILE = 64 * 2**20


class _Refused(Exception):
    """The policy returned something that cannot be sent as an action; the message says why."""


def _play(end: socket.socket, policy: Any) -> None:
    """Resets a policy and lets it act on each observation that arrives, until the parent closes the channel.

    Args:
        end: The child's end of the channel.
        policy: The policy.
    """
    _, descriptors, _, _ = socket.recv_fds(end, channel.LARGEST, channel.MOST_DESCRIPTORS)
    if not descriptors:
        return
    with os.fdopen(descriptors[0], "rb") as file:
        spec, seeds = pickle.load(file)
    actions = _mapped(descriptors[1], writable=True)
    policy.reset(spec, seeds)
    end.send(channel.READY)
    layout: tuple[Field, ...] = ()
    while True:
        message, descriptors, _, _ = socket.recv_fds(end, channel.LARGEST, channel.MOST_DESCRIPTORS)
        if not message:
            return
        if descriptors:
            observations = _mapped(descriptors[0], writable=False)
        if message[1:]:
            fields = [(name, dtype, tuple(shape)) for name, dtype, shape in json.loads(message[1:])]
            observation = observations.arrays(fields)
        # A copy: the policy may change its dictionary, and this one is used again in the next round.
        action = policy.act(dict(observation))
        parts = dict(action) if isinstance(action, Mapping) else {"": action}
        for name, part in parts.items():
            if not isinstance(part, np.ndarray):
                raise _Refused(f"{_label(name)} is a {type(part).__name__}; a numpy array is required")
        given, answer = fields_of(parts), channel.ACTED
        if given != layout:
            if bytes_for(given) > actions.size:
                shapes = ", ".join(f"{_label(name)} of shape {shape}" for name, _, shape in given)
                raise _Refused(f"{shapes}: that is more than an action has")
            if any(np.dtype(dtype).hasobject for _, dtype, _ in given):
                raise _Refused("action has dtype object; numbers are required")
            shared, layout = actions.arrays(given), given
            answer += json.dumps(given).encode()
        for name, part in parts.items():
            np.copyto(shared[name], part)
        end.send(answer)


def _mapped(descriptor: int, *, writable: bool) -> SharedMemory:
    memory = SharedMemory(descriptor, writable=writable)
    os.close(descriptor)
    return memory


def _label(name: str) -> str:
    return f"action[{name!r}]" if name else "action"


def _failure(error: BaseException) -> tuple[str, str]:
    """Returns two texts about an error to send to the parent: its message, and its traceback.

    The traceback is empty for an action that cannot be sent, since the policy's code raised no error then.
    """
    if isinstance(error, _Refused):
        return str(error)[:_LONGEST_REASON], ""
    # The formatted error may have several lines. The message is the first one; for a SyntaxError, which begins with the
    # line of code, it is the last one.
    lines = traceback.format_exception_only(error)
    said = lines[-1 if isinstance(error, SyntaxError) else 0].strip()
    trace = "".join(traceback.format_tb(error.__traceback__)[-3:])
    return said[:_LONGEST_REASON], trace[-_LONGEST_REASON:]


def main() -> None:
    """Runs the child process; its only command-line argument contains all settings, as JSON."""
    given = json.loads(sys.argv[1])
    end = socket.socket(fileno=given["descriptor"])
    end.setblocking(True)
    # Functions that Numba has compiled in the parent are read from its cache, which this process cannot write: it
    # compiles all others itself, in every episode anew, and stores none. Numba has no setting for that, and the type
    # checker forbids to replace a method.
    _CacheLocator.ensure_cache_path = lambda locator: None  # type: ignore[method-assign]
    Cache.save_overload = lambda stored, signature, compiled: None  # type: ignore[method-assign]
    for limit, most in (
        (resource.RLIMIT_AS, given["memory_bytes"]),
        (resource.RLIMIT_CPU, given["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
        # Signals that wait to be delivered, of which the kernel counts all of a user's.
        (resource.RLIMIT_SIGPENDING, 0),
    ):
        resource.setrlimit(limit, (most, most))
    try:
        confined = confine(given["parent"], given["readable"], os.getcwd())
        end.send(channel.READY + json.dumps(confined).encode())
        policy = Source(**given["source"]).resolve()(**given["settings"])
        end.send(channel.READY)
        _play(end, policy)
    except BaseException as error:
        # BaseException includes SystemExit, so that a policy which tries to end the interpreter is reported, too.
        # Sending fails if the parent has ended, and then nobody needs the report.
        with suppress(OSError):
            end.send(channel.FAILED + json.dumps(_failure(error)).encode())
    # Ends the process at once: threads and exit handlers of the policy could otherwise keep it alive.
    os._exit(0)


if __name__ == "__main__":
    main()
