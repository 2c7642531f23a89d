"""A policy that lives in a process of its own."""

import json
import os
import pickle
import tempfile
from collections.abc import Mapping
from math import ceil
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_integer
from fedbandit_envs.leaderboard.board.child import channel
from fedbandit_envs.leaderboard.board.child.errors import EntryError, printable
from fedbandit_envs.leaderboard.board.child.memory import Field, SharedMemory, bytes_for, fields_of
from fedbandit_envs.leaderboard.board.child.process import ChildProcess
from fedbandit_envs.leaderboard.board.child.source import Source
from fedbandit_envs.spaces import Spaces

_DTYPES = {np.dtype(code).str for code in "?bhilqBHILQefd"}
_WIDEST = 8
_MOST_SECONDS = 2**31
_MIB = 2**20


class ChildPolicy:
    """Plays a submitted policy that lives in a child process, as a policy of this one.

    The child gets spaces, seeds of its own and, round by round, observations in memory that it can only read; it sends
    back actions. Environment, noise and accountant are not there to be found. Its process is a fresh interpreter, a new
    one an episode, with no variables, files or descriptors of this one, in a folder of its own, with limits on memory
    and time, and confined by the kernel as far as :attr:`confined` says. It ends with the episode after it, with
    :meth:`close`, or when the thread that has reset it ends, however that ends. What it prints is lost.

    What is not checked here are the values of actions, which the environment checks as it does for any policy.

    Attributes:
        confined: What the kernel keeps the child from, known from reset on; parts named in ``confinement``.
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
        """Takes note of where the policy is; :meth:`reset` starts it.

        Args:
            load: ``"policy.py"`` with one policy class, ``"policy.py:Class"`` or the entry point ``"module:Class"``.
            settings: Keyword arguments of the class, as JSON has them.
            memory_bytes: Address space that the child may have; an interpreter with NumPy and Numba takes about 1 GiB.
            seconds_a_round: How long it may think about a round.
            seconds_to_start: How long it may take to load, to reset, and to play its first round, in which kernels
                may be compiled.

        Raises:
            ValueError: An argument is out of its range, or ``load`` is none of these.
            FileNotFoundError: There is no such file.
            ModuleNotFoundError: There is no such module.
            TypeError: ``settings`` are nothing that JSON has.
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
        self._child: ChildProcess | None = None
        self._doing, self._round = "before reset", 0
        self.confined: tuple[str, ...] = ()

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Starts a new child for an episode, since nothing may outlive the one before; see :meth:`Policy.reset`.

        Raises:
            EntryError: The policy cannot be loaded, or not prepared.
            OSError: The system has no room for another process.
        """
        self.close()
        self._doing, self._round = "start", 0
        cpu_seconds = 3 * self._seconds_to_start + spaces.horizon * self._seconds_a_round
        self._child = ChildProcess(
            self._source, self._settings, self._memory_bytes, min(ceil(cpu_seconds), _MOST_SECONDS)
        )
        # The first message is sent before any of the entry's code runs, the second after it is loaded.
        self.confined = tuple(json.loads(self._hear(self._seconds_to_start)[1:]))
        self._doing = "loading"
        self._expect_ready()
        self._doing = "reset"
        rows = seeds.shape
        parts = spaces.action.spaces if isinstance(spaces.action, gym_spaces.Dict) else {"": spaces.action}
        self._expected = {name: (*rows, *(part.shape or ())) for name, part in parts.items()}
        self._kinds = {name: _kinds(part) for name, part in parts.items()}
        # Wide enough for whatever numbers come, to be refused by name where they are of the wrong kind.
        slots = [Field(name, f"<f{_WIDEST}", shape) for name, shape in self._expected.items()]
        self._actions = SharedMemory(bytes_for(slots), read_only_for_others=False)
        self._observations: SharedMemory | None = None
        self._layout: tuple[Field, ...] | None = None
        with tempfile.TemporaryFile() as told:
            pickle.dump((spaces, seeds), told)
            told.seek(0)
            self._send(channel.RESET, [told.fileno(), self._actions.descriptor])
        self._actions.close_descriptor()
        self._expect_ready()

    def act(self, observation: Arrays) -> Any:
        """Shows the child the observations, and returns its action; see :meth:`Policy.act`.

        Returns:
            A copy that the child cannot change any more.

        Raises:
            EntryError: It does not answer in time, has ended, or answers something else than an action.
        """
        self._round += 1
        self._doing = f"round {self._round}"
        if self._child is None:
            self._fail("its process has ended before")
        layout = fields_of(observation)
        if layout == self._layout:
            self._show(observation)
            self._send(channel.SEE)
        else:
            descriptors = self._lay_out(layout)
            self._show(observation)
            self._send(channel.SEE_OTHERS + json.dumps(layout).encode(), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
        message = self._hear(self._seconds_to_start if self._round == 1 else self._seconds_a_round)
        if message[:1] == channel.ACTED_OTHERWISE:
            self._take_note(message[1:])
        elif message != channel.ACTED or self._round == 1:
            self._fail(f"it has sent {message[:40]!r}, which is no answer")
        for name, part in self._shared_action.items():
            np.copyto(self._action[name], part)
        return self._action[""] if "" in self._action else dict(self._action)

    def close(self) -> None:
        """Ends the child, and removes its folder; may be called again."""
        if self._child is not None:
            self._child.close()
        self._child = None

    def __enter__(self) -> "ChildPolicy":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _lay_out(self, layout: tuple[Field, ...]) -> list[int]:
        """Finds room for other observations than before; returns descriptors of memory that the child lacks."""
        self._layout = layout
        descriptors = []
        if self._observations is None or bytes_for(layout) > self._observations.size:
            self._observations = SharedMemory(bytes_for(layout), read_only_for_others=True)
            descriptors = [self._observations.descriptor]
        self._shared_observation = self._observations.arrays(layout)
        return descriptors

    def _show(self, observation: Arrays) -> None:
        for shared, array in zip(self._shared_observation.values(), observation.values(), strict=True):
            np.copyto(shared, array)

    def _take_note(self, layout: bytes) -> None:
        """Looks at what the child says its action is, and decides where to find it."""
        try:
            fields = [Field(str(name), str(dtype), tuple(shape)) for name, dtype, shape in json.loads(layout)]
        except (ValueError, TypeError, RecursionError):
            self._fail("it has sent what is no description of an action")
        names = [field.name for field in fields]
        if sorted(names) != sorted(self._expected):
            self._fail(f"action has {_listed(names)}; {_listed(list(self._expected))} is required")
        for field in fields:
            expected, kinds = self._expected[field.name], self._kinds[field.name]
            called = f"action[{field.name!r}]" if field.name else "action"
            if field.shape != expected:
                self._fail(
                    f"{called} has shape {field.shape}; (replicas, agents, ...) = {expected} is required"
                )
            if field.dtype not in _DTYPES or np.dtype(field.dtype).kind not in kinds:
                kind = "a floating-point" if kinds == "f" else "an integer"
                self._fail(f"{called} has dtype {field.dtype}; {kind} dtype is required")
        self._shared_action = self._actions.arrays(fields)
        self._action = {name: np.empty_like(part) for name, part in self._shared_action.items()}

    def _expect_ready(self) -> None:
        message = self._hear(self._seconds_to_start)
        if message != channel.READY:
            self._fail(f"it has sent {message[:40]!r}, which is no answer")

    def _send(self, message: bytes, descriptors: list[int] | None = None) -> None:
        assert self._child is not None
        try:
            channel.send(self._child.end, message, descriptors)
        except (channel.ClosedError, TimeoutError, OSError):
            # What it said before it ended tells why.
            self._hear(self._seconds_a_round)
            self._fail(self._child.ending())

    def _hear(self, seconds: float) -> bytes:
        """Returns the child's next message, unless it says that it has failed."""
        assert self._child is not None
        self._child.end.settimeout(seconds)
        try:
            message = channel.receive(self._child.end)
        except TimeoutError:
            self._fail(f"it has not answered within {seconds:g} s")
        except (channel.ClosedError, OSError):
            self._fail(self._child.ending())
        if message[:1] == channel.FAILED:
            self._fail(*_read_failure(message[1:]))
        return message

    def _fail(self, reason: str, trace: str = "") -> NoReturn:
        self.close()
        error = EntryError(f"{self._doing}: {reason}")
        if trace:
            error.add_note(trace)
        raise error


def _kinds(space: gym_spaces.Space) -> str:
    """Returns the kinds of dtype that an action of a space may have; see :class:`ActionCheck`."""
    if isinstance(space, gym_spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return "f"
    return "biu" if isinstance(space, gym_spaces.Discrete) and space.n == 2 else "iu"


def _read_failure(message: bytes) -> tuple[str, str]:
    """Returns what the child says went wrong: text of whoever wrote the policy, without control characters."""
    try:
        told = json.loads(message)
        said, trace = str(told["said"]), str(told["trace"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "it has failed, and does not say how", ""
    return printable(said) or "it has failed, and does not say how", printable(trace)


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names) if names != [""] else "an array, no mapping"
