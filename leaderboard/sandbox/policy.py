"""A submitted policy that runs in a sandboxed process of its own."""

import json
import os
import pickle
import socket
import tempfile
from collections.abc import Mapping
from math import ceil
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.leaderboard.sandbox import channel
from fedbandit_envs.leaderboard.sandbox.errors import EntryError, printable
from fedbandit_envs.leaderboard.sandbox.memory import Field, SharedMemory, bytes_for, fields_of
from fedbandit_envs.leaderboard.sandbox.process import SandboxProcess
from fedbandit_envs.leaderboard.sandbox.source import Source

_DTYPES = {np.dtype(code).str for code in "?bhilqBHILQefd"}
_MOST_SECONDS = 2**31
_MIB = 2**20


class SandboxedPolicy:
    """A submitted policy that runs in a child process and is used like any other policy.

    The child process gets a policy specification, the policy's seeds and, round by round, observations in memory that
    it can only read; it sends back actions. Environment, noise and privacy accountant are in the parent process. Every
    episode starts a new Python interpreter, which has no variables, files or descriptors of the parent. It works in a
    folder of its own, with limits on memory and time, confined by the kernel as far as :attr:`confined` says. The child
    ends when the next episode starts (:meth:`reset`), when :meth:`close` is called, or when the thread that called
    :meth:`reset` ends, even if that thread is killed. Text that the policy prints is discarded.

    Shapes and dtypes of actions are checked here, and their values by the environment, as for any policy.

    Attributes:
        confined: The parts of confinement that the kernel enforces on the child process
            (:data:`.parts.PARTS`); empty before the first reset.

    Example:
        >>> with SandboxedPolicy("fedbandit_envs.baselines.arms:UCB1") as policy:
        ...     policy.confined
        ()
    """

    def __init__(
        self,
        load: str,
        *,
        settings: Mapping[str, Any] | None = None,
        memory_bytes: int = 4096 * _MIB,
        seconds_a_round: float = 1.0,
        seconds_to_start: float = 120.0,
    ) -> None:
        """Finds the policy's code; no process is started before :meth:`reset`.

        Args:
            load: Place of the policy's code: ``"policy.py"``, a file with one policy class; ``"policy.py:Class"``; or
                the entry point ``"module:Class"``.
            settings: Keyword arguments of the class; they must be JSON data.
            memory_bytes: Limit of the child's address space, in bytes; an interpreter with NumPy and Numba takes about
                1 GiB.
            seconds_a_round: Time limit of each round but the first, in seconds.
            seconds_to_start: Time limit, in seconds, of each step of the start: to start the process, to load the
                policy, to reset it, and to play the first round, in which functions may be compiled.

        Raises:
            ValueError: An argument is out of its range, or ``load`` has none of these forms.
            FileNotFoundError: The file does not exist.
            ModuleNotFoundError: The module does not exist.
            TypeError: ``settings`` cannot be written as JSON.
        """
        require_integer("memory_bytes", memory_bytes, 256 * _MIB)
        for name, seconds in (("seconds_a_round", seconds_a_round), ("seconds_to_start", seconds_to_start)):
            if not 0.0 < seconds < np.inf:
                raise ValueError(f"{name} is {seconds}; a number above 0 is required")
        self._source = Source.parse(load)
        self._source.files()
        self._settings = dict(settings or {})
        json.dumps(self._settings)
        self._memory_bytes = memory_bytes
        self._seconds_a_round, self._seconds_to_start = seconds_a_round, seconds_to_start
        self._child: SandboxProcess | None = None
        self._stage, self._round = "before reset", 0
        self.confined: tuple[str, ...] = ()

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Ends the child process, starts a new one, and resets the policy in it; see :meth:`Policy.reset`.

        The policy thus keeps nothing from one episode to the next.

        Args:
            spec: What the policy is told about the environment.
            seeds: A seed for each row (one agent in one replica), ``(replicas, agents)``.

        Raises:
            EntryError: The policy cannot be loaded or reset.
            OSError: The system cannot start another process.
        """
        self.close()
        self._stage, self._round = "start", 0
        cpu_seconds = 3 * self._seconds_to_start + spec.horizon * self._seconds_a_round
        self._child = SandboxProcess(
            self._source, self._settings, self._memory_bytes, min(ceil(cpu_seconds), _MOST_SECONDS)
        )
        # The first message, which lists the parts of confinement, is sent before any code of the submission is loaded,
        # so that it can be trusted. The next message says that the code has been loaded.
        self.confined = tuple(json.loads(self._receive(self._seconds_to_start)))
        self._stage = "loading"
        self._receive(self._seconds_to_start)
        self._stage = "reset"
        parts = spec.action.spaces if isinstance(spec.action, gym_spaces.Dict) else {"": spec.action}
        self._expected = {
            name: ((*seeds.shape, *(part.shape or ())), _kinds(part)) for name, part in parts.items()
        }
        # There is room for numbers of 8 bytes, whatever dtype is required: an action of a wrong dtype then arrives, and
        # can be refused by an error that names it.
        slots = [(name, "<f8", shape) for name, (shape, _) in self._expected.items()]
        self._actions = SharedMemory.create(bytes_for(slots), read_only_for_others=False)
        self._observations: SharedMemory | None = None
        self._layout: tuple[Field, ...] | None = None
        with tempfile.TemporaryFile() as arguments:
            pickle.dump((spec, seeds), arguments)
            arguments.seek(0)
            self._send(channel.RESET, [arguments.fileno(), self._actions.descriptor])
        os.close(self._actions.descriptor)
        self._receive(self._seconds_to_start)

    def act(self, observation: Arrays) -> Any:
        """Sends the observations to the child process and returns the policy's action; see :meth:`Policy.act`.

        Args:
            observation: Observations of all rows, by name.

        Returns:
            The action, as a copy that the child cannot change any more.

        Raises:
            EntryError: The child process does not answer in time, has ended, or sends something that is not an action.
        """
        self._round += 1
        self._stage = f"round {self._round}"
        if self._child is None:
            self._fail("its process has ended before")
        layout = fields_of(observation)
        message, descriptors = channel.SEE, []
        if layout != self._layout:
            self._layout = layout
            message += json.dumps(layout).encode()
            if self._observations is None or bytes_for(layout) > self._observations.size:
                self._observations = SharedMemory.create(bytes_for(layout), read_only_for_others=True)
                descriptors = [self._observations.descriptor]
            self._shared_observation = self._observations.arrays(layout)
        for shared, array in zip(self._shared_observation.values(), observation.values(), strict=True):
            np.copyto(shared, array)
        self._send(message, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        seconds = self._seconds_to_start if self._round == 1 else self._seconds_a_round
        layout_of_action = self._receive(seconds, channel.ACTED)
        if layout_of_action or self._round == 1:
            self._check_layout(layout_of_action)
        for name, part in self._shared_action.items():
            np.copyto(self._action[name], part)
        return self._action[""] if "" in self._action else dict(self._action)

    def close(self) -> None:
        """Ends the child process and removes its folder; nothing happens if there is none."""
        if self._child is not None:
            self._child.close()
        self._child = None

    def __enter__(self) -> "SandboxedPolicy":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check_layout(self, layout: bytes) -> None:
        """Checks the layout of the child's actions, and finds the arrays of this layout in shared memory.

        Args:
            layout: Names, dtypes and shapes of the action's arrays, as JSON that the child has sent.

        Raises:
            EntryError: The layout is not that of an action of this environment.
        """
        try:
            fields = [(str(name), str(dtype), tuple(shape)) for name, dtype, shape in json.loads(layout)]
        except (ValueError, TypeError, RecursionError):
            self._fail("it has sent what is no description of an action")
        names = [name for name, _, _ in fields]
        if sorted(names) != sorted(self._expected):
            self._fail(f"action has {_listed(names)}; {_listed(list(self._expected))} is required")
        for name, dtype, shape in fields:
            expected, kinds = self._expected[name]
            label = f"action[{name!r}]" if name else "action"
            # Numbers such as 2.0 and True equal integers, and are no sizes of an array.
            if shape != expected or any(type(size) is not int for size in shape):
                self._fail(f"{label} has shape {shape}; (replicas, agents, ...) = {expected} is required")
            if dtype not in _DTYPES or np.dtype(dtype).kind not in kinds:
                kind = "a floating-point" if kinds == "f" else "an integer"
                self._fail(f"{label} has dtype {dtype}; {kind} dtype is required")
        self._shared_action = self._actions.arrays(fields)
        self._action = {name: np.empty_like(part) for name, part in self._shared_action.items()}

    def _send(self, message: bytes, descriptors: list[int]) -> None:
        assert self._child is not None
        try:
            socket.send_fds(self._child.end, [message], descriptors, socket.MSG_NOSIGNAL)
        except OSError:
            # Sending failed since the child has ended. If it sent a message before, that says why, and is raised.
            self._receive(self._seconds_a_round)
            self._fail(self._child.ending())

    def _receive(self, seconds: float, kind: bytes = channel.READY) -> bytes:
        """Returns the content of the child's next message, without its first byte, which is the message's kind.

        Args:
            seconds: How long to wait for the message.
            kind: Kind that the message must have.

        Raises:
            EntryError: No message came in time, the child has ended or reports an error, or the kind is another.
        """
        assert self._child is not None
        self._child.end.settimeout(seconds)
        try:
            message = self._child.end.recv(channel.LARGEST)
        except TimeoutError:
            self._fail(f"it has not answered within {seconds:g} s")
        except OSError:
            message = b""
        if not message:
            self._fail(self._child.ending())
        if message[:1] == channel.FAILED:
            self._fail(*_read_failure(message[1:]))
        if message[:1] != kind:
            self._fail(f"it has sent {message[:40]!r}, which is no answer")
        return message[1:]

    def _fail(self, reason: str, trace: str = "") -> NoReturn:
        self.close()
        error = EntryError(f"{self._stage}: {reason}")
        if trace:
            error.add_note(trace)
        raise error


def _kinds(space: gym_spaces.Space) -> str:
    """Returns the letters of NumPy's dtype kinds that actions of a space may have.

    These are ``f`` (floating-point) for continuous spaces and ``iu`` (integers) for others, with ``b`` (boolean) added
    if there are two actions. The environment's own check, :class:`ActionCheck`, accepts the same.
    """
    if isinstance(space, gym_spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return "f"
    return "biu" if isinstance(space, gym_spaces.Discrete) and space.n == 2 else "iu"


def _read_failure(message: bytes) -> tuple[str, str]:
    """Returns the error message and the traceback that a child process has sent when its policy failed.

    The policy's author controls both texts: control characters in them are replaced.

    Args:
        message: The child's message, which should be JSON.
    """
    try:
        said, trace = map(str, json.loads(message))
    except (ValueError, TypeError, RecursionError):
        said, trace = "", ""
    return printable(said) or "it has failed, and does not say how", printable(trace)


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names) if names != [""] else "an array, no mapping"
