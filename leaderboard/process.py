"""Policies of files, which act in processes of their own that are sent observations through a pipe and nothing else.

This keeps a policy from the environment's objects, and makes it play rows (one agent in one replica) apart from each
other. It does not confine what the code does to the machine: an entry is read before it is run.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.policy_spec import PolicySpec

_SECONDS = 600
"""Longest time that an answer may take."""

_SERVE = "from fedbandit_envs.leaderboard.process import serve; serve()"


class EntryError(RuntimeError):
    """A file's policy fails, does not answer, or returns what is no action; the message says in which round."""


class FilePolicy:
    """A policy of a file, in processes that begin with the episode in folders with the file's code alone.

    Attributes:
        round: Number of rounds that have been played in the episode.
    """

    def __init__(
        self, code: bytes, name: str, settings: Mapping[str, Any], agents: Sequence[int] | None = None
    ) -> None:
        """Keeps what makes the policy; processes start with :meth:`reset`.

        Args:
            code: Content of the file.
            name: Name of the class or function in the file that makes the policy.
            settings: Keyword arguments for it.
            agents: Agents that play in processes of their own, each of which sees nothing of other agents; all agents,
                or one like which the others act. None for one process of all agents.
        """
        self._made = (code, name, dict(settings))
        self._rows = [slice(None)] if agents is None else [slice(agent, agent + 1) for agent in agents]
        self._children: list[
            tuple[Connection, subprocess.Popen[bytes], tempfile.TemporaryDirectory[str]]
        ] = []
        self.round = 0

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Ends the processes, starts new ones in new folders, and resets the policy there; see :meth:`Policy.reset`.

        Raises:
            EntryError: The policy cannot be loaded or reset.
        """
        self.close()
        self.round, self._agents = 0, seeds.shape[1]
        for rows in self._rows:
            folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            pipe, end = Pipe()
            env = {**os.environ, "TMPDIR": folder.name}
            process = subprocess.Popen(
                [sys.executable, "-c", _SERVE], stdin=end.fileno(), cwd=folder.name, env=env
            )
            end.close()
            self._children.append((pipe, process, folder))
            self._ask(pipe, self._made, spec, seeds[:, rows])

    def act(self, observation: Arrays) -> Any:
        """Returns the policy's action; see :meth:`Policy.act`.

        Raises:
            EntryError: A process does not answer in time, has ended, or sends something that is not an action.
        """
        self.round += 1
        seen = [{name: part[:, rows] for name, part in observation.items()} for rows in self._rows]
        answers = [self._ask(child[0], own) for child, own in zip(self._children, seen, strict=True)]
        try:
            actions = [*map(_unpacked, answers)]
            whole = {name: np.concatenate([one[name] for one in actions], axis=1) for name in actions[0]}
        except Exception as error:
            self._fail(f"what it has sent is no action: {error}")
        if whole and next(iter(whole.values())).shape[1] == 1:
            whole = {name: np.repeat(part, self._agents, axis=1) for name, part in whole.items()}
        return whole.get("", whole)

    def close(self) -> None:
        """Ends all processes and removes their folders."""
        for pipe, process, folder in self._children:
            process.kill()
            process.wait()
            pipe.close()
            folder.cleanup()
        self._children = []

    def _ask(self, pipe: Connection, *message: Any) -> bytes:
        """Sends a message to a process and returns its answer."""
        try:
            pipe.send(message)
            answer = pipe.recv_bytes() if pipe.poll(_SECONDS) else b"no answer in time"
        except (EOFError, OSError):
            answer = b"its process has ended"
        if answer[:1] != b"+":
            # The text is the entry's: without control characters it cannot change what a terminal shows elsewhere.
            text = answer.decode(errors="replace")
            self._fail("".join(letter if letter.isprintable() else "?" for letter in text))
        return answer[1:]

    def _fail(self, reason: str) -> NoReturn:
        self.close()
        raise EntryError(f"round {self.round}: {reason}")


def serve() -> None:
    """Is the process: makes a policy from the first message, and answers the others by its actions."""
    pipe = Connection(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    try:
        (code, name, settings), spec, seeds = pipe.recv()
        Path("entry.py").write_bytes(code)
        policy = resolve(f"entry.py:{name}")(**settings)
        policy.reset(spec, seeds)
        answer = b""
        while True:
            pipe.send_bytes(b"+" + answer)
            answer = _packed(policy.act(*pipe.recv()))
    except EOFError:
        pass
    except BaseException as error:
        pipe.send_bytes(f"{type(error).__name__}: {error}".encode())
    # Threads and exit handlers of the policy would keep the process alive.
    os._exit(0)


def _packed(action: Any) -> bytes:
    parts = action if isinstance(action, Mapping) else {"": action}
    out = BytesIO()
    out.write(json.dumps(list(parts)).encode() + b"\n")
    for name, part in parts.items():
        if not isinstance(part, np.ndarray):
            raise TypeError(f"action {name} is a {type(part).__name__}; a numpy array is required")
        np.lib.format.write_array(out, part, allow_pickle=False)
    return out.getvalue()


def _unpacked(answer: bytes) -> Arrays:
    """Returns the arrays of an action by name, ``""`` for an array alone; nothing in the answer is run as code."""
    sent = BytesIO(answer)
    return {name: np.lib.format.read_array(sent, allow_pickle=False) for name in json.loads(sent.readline())}
