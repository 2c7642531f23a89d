"""A policy that runs in a sandboxed process of its own."""

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
    """A submitted policy that runs in a child process and is used like a policy of this process.

    The child gets a policy specification, seeds of its own and, round by round, observations in memory that it can only
    read; it sends back actions. Environment, noise and accountant are not in its process. Every episode starts a new
    interpreter, without variables, files or descriptors of this one, in a folder of its own, with limits on memory and
    time, and confined by the kernel as far as :attr:`confined` says. It ends with the episode after it, with
    :meth:`close`, or when the thread that has reset it ends, however that ends. What it prints is lost.

    Values of actions are not checked here but by the environment, as for any policy.

    Attributes:
        confined: The parts of ``confinement`` that the kernel enforces on the child; known after reset.

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
        """Finds the policy's code; :meth:`reset` starts it.

        Args:
            load: ``"policy.py"`` with one policy class, ``"policy.py:Class"`` or the entry point ``"module:Class"``.
            settings: Keyword arguments of the class, which JSON must have.
            memory_bytes: Limit of the child's address space; an interpreter with NumPy and Numba takes about 1 GiB.
            seconds_a_round: Limit of the time for one round.
            seconds_to_start: Limit of the time to load, to reset, and to play the first round, in which kernels may
                be compiled.

        Raises:
            ValueError: An argument is out of its range, or ``load`` is none of these.
            FileNotFoundError: The file does not exist.
            ModuleNotFoundError: The module does not exist.
            TypeError: JSON has no form for ``settings``.
        """
        require_integer("memory_bytes", memory_bytes, 256 * _MIB)
        for name, seconds in (("seconds_a_round", seconds_a_round), ("seconds_to_start", seconds_to_start)):
            if not 0.0 < seconds < np.inf:
                raise ValueError(f"{name} is {seconds}; a number above 0 is required")
        self._source = Source.parse(load)
        self._source.roots()
        self._settings = dict(settings or {})
        json.dumps(self._settings)
        self._memory_bytes = memory_bytes
        self._seconds_a_round, self._seconds_to_start = seconds_a_round, seconds_to_start
        self._child: SandboxProcess | None = None
        self._stage, self._round = "before reset", 0
        self.confined: tuple[str, ...] = ()

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Starts a new child for an episode, so that nothing outlives the one before; see :meth:`Policy.reset`.

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
        # The child reports its confinement before it loads the entry's code, and sends its next message after that.
        self.confined = tuple(json.loads(self._receive(self._seconds_to_start)[1:]))
        self._stage = "loading"
        self._expect_ready()
        self._stage = "reset"
        parts = spec.action.spaces if isinstance(spec.action, gym_spaces.Dict) else {"": spec.action}
        self._expected = {name: (*seeds.shape, *(part.shape or ())) for name, part in parts.items()}
        self._kinds = {name: _kinds(part) for name, part in parts.items()}
        # Room for the widest numbers, so that those of a wrong kind arrive and can be refused by name.
        slots = [Field(name, "<f8", shape) for name, shape in self._expected.items()]
        self._actions = SharedMemory.create(bytes_for(slots), read_only_for_others=False)
        self._observations: SharedMemory | None = None
        self._layout: tuple[Field, ...] | None = None
        with tempfile.TemporaryFile() as arguments:
            pickle.dump((spec, seeds), arguments)
            arguments.seek(0)
            self._send(channel.RESET, [arguments.fileno(), self._actions.descriptor])
        os.close(self._actions.descriptor)
        self._expect_ready()

    def act(self, observation: Arrays) -> Any:
        """Sends the observations to the child, and returns its action; see :meth:`Policy.act`.

        Returns:
            A copy, which the child cannot change.

        Raises:
            EntryError: The child does not answer in time, has ended, or answers anything but an action.
        """
        self._round += 1
        self._stage = f"round {self._round}"
        if self._child is None:
            self._fail("its process has ended before")
        layout = fields_of(observation)
        message, descriptors = channel.SEE, []
        if layout != self._layout:
            message += json.dumps(layout).encode()
            descriptors = self._lay_out(layout)
        for shared, array in zip(self._shared_observation.values(), observation.values(), strict=True):
            np.copyto(shared, array)
        self._send(message, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        answer = self._receive(self._seconds_to_start if self._round == 1 else self._seconds_a_round)
        layout_of_action = answer[1:]
        if answer[:1] != channel.ACTED or (self._round == 1 and not layout_of_action):
            self._fail(f"it has sent {answer[:40]!r}, which is no answer")
        if layout_of_action:
            self._check_layout(layout_of_action)
        for name, part in self._shared_action.items():
            np.copyto(self._action[name], part)
        return self._action[""] if "" in self._action else dict(self._action)

    def close(self) -> None:
        """Ends the child, and removes its folder; may be called again."""
        if self._child is not None:
            self._child.close()
        self._child = None

    def __enter__(self) -> "SandboxedPolicy":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _lay_out(self, layout: tuple[Field, ...]) -> list[int]:
        """Makes room for observations of a new layout; returns descriptors of memory that the child lacks."""
        self._layout = layout
        descriptors = []
        if self._observations is None or bytes_for(layout) > self._observations.size:
            self._observations = SharedMemory.create(bytes_for(layout), read_only_for_others=True)
            descriptors = [self._observations.descriptor]
        self._shared_observation = self._observations.arrays(layout)
        return descriptors

    def _check_layout(self, layout: bytes) -> None:
        """Checks the layout that the child announces for its actions, and finds their arrays."""
        try:
            fields = [Field(str(name), str(dtype), tuple(shape)) for name, dtype, shape in json.loads(layout)]
        except (ValueError, TypeError, RecursionError):
            self._fail("it has sent what is no description of an action")
        names = [field.name for field in fields]
        if sorted(names) != sorted(self._expected):
            self._fail(f"action has {_listed(names)}; {_listed(list(self._expected))} is required")
        for name, dtype, shape in fields:
            expected, kinds = self._expected[name], self._kinds[name]
            label = f"action[{name!r}]" if name else "action"
            if shape != expected:
                self._fail(f"{label} has shape {shape}; (replicas, agents, ...) = {expected} is required")
            if dtype not in _DTYPES or np.dtype(dtype).kind not in kinds:
                kind = "a floating-point" if kinds == "f" else "an integer"
                self._fail(f"{label} has dtype {dtype}; {kind} dtype is required")
        self._shared_action = self._actions.arrays(fields)
        self._action = {name: np.empty_like(part) for name, part in self._shared_action.items()}

    def _expect_ready(self) -> None:
        message = self._receive(self._seconds_to_start)
        if message != channel.READY:
            self._fail(f"it has sent {message[:40]!r}, which is no answer")

    def _send(self, message: bytes, descriptors: list[int]) -> None:
        assert self._child is not None
        try:
            if descriptors:
                socket.send_fds(self._child.end, [message], descriptors)
            else:
                self._child.end.send(message, socket.MSG_NOSIGNAL)
        except OSError:
            # A message that the child sent before it ended tells why.
            self._receive(self._seconds_a_round)
            self._fail(self._child.ending())

    def _receive(self, seconds: float) -> bytes:
        """Returns the child's next message; fails if that says that the child has failed."""
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
        return message

    def _fail(self, reason: str, trace: str = "") -> NoReturn:
        self.close()
        error = EntryError(f"{self._stage}: {reason}")
        if trace:
            error.add_note(trace)
        raise error


def _kinds(space: gym_spaces.Space) -> str:
    """Returns the kinds of dtype that an action of a space may have; see :class:`ActionCheck`."""
    if isinstance(space, gym_spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return "f"
    return "biu" if isinstance(space, gym_spaces.Discrete) and space.n == 2 else "iu"


def _read_failure(message: bytes) -> tuple[str, str]:
    """Returns the child's reason and traceback: text of the policy's author, without control characters."""
    unknown = "it has failed, and does not say how"
    try:
        given = json.loads(message)
        said, trace = str(given["said"]), str(given["trace"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return unknown, ""
    return printable(said) or unknown, printable(trace)


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names) if names != [""] else "an array, no mapping"
