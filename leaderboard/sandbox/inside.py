"""The child process: confines itself, loads a policy, and plays it until the parent closes the channel.

The parent trusts nothing that happens here once the policy's code is loaded.
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

from fedbandit_envs.leaderboard.sandbox import channel
from fedbandit_envs.leaderboard.sandbox.confinement import confine
from fedbandit_envs.leaderboard.sandbox.memory import Field, SharedMemory, bytes_for, fields_of
from fedbandit_envs.leaderboard.sandbox.source import Source

_LONGEST_REASON = 4000
_LARGEST_FILE = 64 * 2**20


class _Refused(Exception):
    """The policy's action cannot be sent."""


def _play(end: socket.socket, policy: Any) -> None:
    """Plays one episode of a policy, round by round, until the parent closes the channel."""
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
            fields = tuple(Field(name, dtype, tuple(shape)) for name, dtype, shape in json.loads(message[1:]))
            observation = observations.arrays(fields)
        # The policy gets a dict of its own, which it may change.
        action = policy.act(dict(observation))
        parts = dict(action) if isinstance(action, Mapping) else {"": action}
        for name, part in parts.items():
            if not isinstance(part, np.ndarray):
                raise _Refused(f"{_label(name)} is a {type(part).__name__}; a numpy array is required")
        fields, answer = fields_of(parts), channel.ACTED
        if fields != layout:
            if bytes_for(fields) > actions.size:
                shapes = ", ".join(f"{_label(field.name)} of shape {field.shape}" for field in fields)
                raise _Refused(f"{shapes}: that is more than an action has")
            if any(np.dtype(field.dtype).hasobject for field in fields):
                raise _Refused("action has dtype object; numbers are required")
            shared, layout = actions.arrays(fields), fields
            answer += json.dumps(fields).encode()
        for name, part in parts.items():
            np.copyto(shared[name], part)
        end.send(answer)


def _mapped(descriptor: int, *, writable: bool) -> SharedMemory:
    memory = SharedMemory(descriptor, writable=writable)
    os.close(descriptor)
    return memory


def _label(name: str) -> str:
    return f"action[{name!r}]" if name else "action"


def _failure(error: BaseException) -> dict[str, str]:
    """Returns kind, message and traceback of an error, for the parent."""
    if isinstance(error, _Refused):
        return {"said": str(error)[:_LONGEST_REASON], "trace": ""}
    # Without notes; of a SyntaxError the line of code comes first.
    lines = traceback.format_exception_only(error)
    said = lines[-1 if isinstance(error, SyntaxError) else 0].strip()
    trace = "".join(traceback.format_tb(error.__traceback__)[-3:])
    return {"said": said[:_LONGEST_REASON], "trace": trace[-_LONGEST_REASON:]}


def main() -> None:
    """Runs the child; its one argument has all that it needs, as JSON."""
    given = json.loads(sys.argv[1])
    end = socket.socket(fileno=given["descriptor"])
    end.setblocking(True)
    for limit, most in (
        (resource.RLIMIT_AS, given["memory_bytes"]),
        (resource.RLIMIT_CPU, given["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    try:
        confined = confine(given["parent"], given["readable"], os.getcwd())
        end.send(channel.READY + json.dumps(confined).encode())
        policy = Source(**given["source"]).resolve()(**given["settings"])
        end.send(channel.READY)
        _play(end, policy)
    except BaseException as error:
        # SystemExit too: a policy that ends the interpreter is reported as such, unless the parent has gone.
        with suppress(OSError):
            end.send(channel.FAILED + json.dumps(_failure(error)).encode())
    # Ends the process at once, whatever threads and exit handlers a policy has left.
    os._exit(0)


if __name__ == "__main__":
    main()
