"""Policies of files, which act in processes of their own that are sent observations through a pipe and nothing else.

This keeps a policy from the environment's objects, and makes it play rows (one agent in one replica) apart from each
other. It does not confine what the code does to the machine: an entry is read before it is run.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.leaderboard.suites import BoardError

_SECONDS = 600
"""Longest time that an answer may take."""

_ZIP = b"PK"  # how arrays in NumPy's format begin, and no error does
_ALONE = "array alone"
"""Name under which a process sends an action that is an array and has no names."""

_SERVE = "from fedbandit_envs.leaderboard.process import serve; serve({})"


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
            BoardError: The policy cannot be loaded or reset.
        """
        self.close()
        self.round, self._agents = 0, seeds.shape[1]
        for rows in self._rows:
            folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            pipe, end = Pipe()
            process = subprocess.Popen(
                [sys.executable, "-c", _SERVE.format(end.fileno())],
                pass_fds=[end.fileno()],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder.name,
                env={**os.environ, "TMPDIR": folder.name},
            )
            end.close()
            self._children.append((pipe, process, folder))
            self._ask(pipe, self._made, spec, seeds[:, rows])

    def act(self, observation: Arrays) -> Any:
        """Returns the policy's action; see :meth:`Policy.act`.

        Raises:
            BoardError: A process does not answer in time, has ended, or sends something that is not an action.
        """
        self.round += 1
        seen = [{name: part[:, rows] for name, part in observation.items()} for rows in self._rows]
        actions = [self._ask(child[0], own) for child, own in zip(self._children, seen, strict=True)]
        whole = {name: np.concatenate([one[name] for one in actions], axis=1) for name in actions[0]}
        if whole and next(iter(whole.values())).shape[1] == 1:
            whole = {name: np.repeat(part, self._agents, axis=1) for name, part in whole.items()}
        return whole.get(_ALONE, whole)

    def close(self) -> None:
        """Ends all processes and removes their folders."""
        for pipe, process, folder in self._children:
            process.kill()
            process.wait()
            pipe.close()
            folder.cleanup()
        self._children = []

    def _ask(self, pipe: Connection, *message: Any) -> Arrays:
        """Sends a message to a process and returns the arrays of its answer; nothing in it is run as code."""
        try:
            pipe.send(message)
            answer = pipe.recv_bytes() if pipe.poll(_SECONDS) else b"no answer in time"
        except (EOFError, OSError):
            answer = b"its process has ended"
        if not answer.startswith(_ZIP):
            self.close()
            # The text is the entry's: without control characters it cannot change what a terminal shows elsewhere.
            raise BoardError(f"round {self.round}: {answer.decode(errors='replace')!a}")
        with np.load(BytesIO(answer)) as arrays:
            return dict(arrays)


def serve(descriptor: int) -> None:
    """Is the process: makes a policy from the first message, and answers the others by its actions.

    Args:
        descriptor: File descriptor of the pipe.
    """
    pipe = Connection(descriptor)
    action: Mapping[str, Any] = {}
    try:
        (code, name, settings), spec, seeds = pipe.recv()
        Path("entry.py").write_bytes(code)
        policy = resolve(f"entry.py:{name}")(**settings)
        policy.reset(spec, seeds)
        while True:
            answer = BytesIO()
            np.savez(answer, **action)
            pipe.send_bytes(answer.getvalue())
            acted = policy.act(*pipe.recv())
            action = acted if isinstance(acted, Mapping) else {_ALONE: acted}
    except EOFError:
        pass
    except BaseException as error:
        pipe.send_bytes(f"{type(error).__name__}: {error}".encode())
    # Threads and exit handlers of the policy would keep the process alive.
    os._exit(0)
