"""The child: confines itself, loads a policy and plays it until the parent is gone.

Nothing that happens here is trusted by the parent once the policy's code is loaded.
"""

import json
import os
import pickle
import resource
import socket
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.board.child import channel
from fedbandit_envs.leaderboard.board.child.confinement import confine
from fedbandit_envs.leaderboard.board.child.memory import Field, SharedView, bytes_for, fields_of
from fedbandit_envs.leaderboard.board.child.source import Source

_LONGEST_REASON = 4000
_LARGEST_FILE = 64 * 2**20


class _Refused(Exception):
    """What the policy did is nothing that could be sent."""


class _Player:
    """Plays the policy round by round."""

    def __init__(self, end: socket.socket, policy: Any) -> None:
        self._end = end
        self._policy = policy
        self._actions: SharedView | None = None
        self._observations: SharedView | None = None
        self._said: tuple[Field, ...] = ()

    def reset(self, descriptors: list[int]) -> None:
        """Prepares the policy for an episode."""
        told, actions = descriptors
        with os.fdopen(told, "rb") as file:
            spaces, seeds = pickle.load(file)
        self._actions = SharedView(actions, writable=True)
        self._policy.reset(spaces, seeds)
        channel.send(self._end, channel.READY)

    def see(self, layout: bytes, descriptors: list[int]) -> None:
        """Takes note of where observations lie from now on."""
        if descriptors:
            self._observations = SharedView(descriptors[0], writable=False)
        assert self._observations is not None
        fields = [Field(name, dtype, tuple(shape)) for name, dtype, shape in json.loads(layout)]
        self._seen = self._observations.arrays(fields)

    def act(self) -> None:
        """Asks the policy for an action, and hands it over."""
        assert self._actions is not None
        # A dict of its own: what the policy does to it is forgotten.
        action = self._policy.act(dict(self._seen))
        parts = dict(action) if isinstance(action, Mapping) else {"": action}
        for name, part in parts.items():
            if not isinstance(part, np.ndarray):
                raise _Refused(f"{_called(name)} is a {type(part).__name__}; a numpy array is required")
        fields = fields_of(parts)
        if fields != self._said:
            if bytes_for(fields) > self._actions.size:
                shapes = ", ".join(f"{_called(field.name)} of shape {field.shape}" for field in fields)
                raise _Refused(f"{shapes}: that is more than an action has")
            if any(np.dtype(field.dtype).hasobject for field in fields):
                raise _Refused("action has dtype object; numbers are required")
            self._cut = self._actions.arrays(fields)
        for name, part in parts.items():
            np.copyto(self._cut[name], part)
        if fields == self._said:
            channel.send(self._end, channel.ACTED)
        else:
            channel.send(self._end, channel.ACTED_OTHERWISE + json.dumps(fields).encode())
            self._said = fields


def _called(name: str) -> str:
    return f"action[{name!r}]" if name else "action"


def _serve(end: socket.socket, source: Source, settings: dict[str, Any]) -> None:
    player = _Player(end, source.resolve()(**settings))
    channel.send(end, channel.READY)
    while True:
        message, descriptors, _, _ = socket.recv_fds(end, channel.LARGEST, channel.MOST_DESCRIPTORS)
        kind = message[:1]
        if not kind:
            return
        if kind == channel.RESET:
            player.reset(descriptors)
            continue
        if kind == channel.SEE_OTHERS:
            player.see(message[1:], descriptors)
        player.act()


def _said(error: BaseException) -> str:
    """Returns kind and message of an error, without its notes or the line of code that is no Python."""
    return traceback.format_exception_only(error)[-1 if isinstance(error, SyntaxError) else 0].strip()


def main() -> None:
    """Plays the child's part; all it needs is in the one argument, JSON."""
    told = json.loads(sys.argv[1])
    end = socket.socket(fileno=told["descriptor"])
    end.setblocking(True)
    for limit, most in (
        (resource.RLIMIT_AS, told["memory_bytes"]),
        (resource.RLIMIT_CPU, told["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    try:
        confined = confine(told["parent"], told["readable"], os.getcwd())
        channel.send(end, channel.READY + json.dumps(confined).encode())
        _serve(end, Source(**told["source"]), told["settings"])
    except channel.ClosedError:
        pass
    except BaseException as error:
        # SystemExit too: a policy that ends the interpreter should read as that.
        refused = isinstance(error, _Refused)
        said = str(error) if refused else _said(error)
        trace = "" if refused else "".join(traceback.format_tb(error.__traceback__)[-3:])
        reason = {"said": said[:_LONGEST_REASON], "trace": trace[-_LONGEST_REASON:]}
        channel.send(end, channel.FAILED + json.dumps(reason).encode())
    # Neither threads that a policy has left nor its exit handlers hold the process.
    os._exit(0)


if __name__ == "__main__":
    main()
