"""Authored messages: agents release what their policy, or a reporter, has written, in place of statistics."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatten_space

from fedbandit_envs.basics.arrays import Array, Arrays, spread, zeros
from fedbandit_envs.basics.checks import require_flag, require_integer
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.actions import (
    ActionCheck,
    FlatSending,
    WithEntry,
    add_entry,
    require_action_entries,
    require_finite,
)
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.policy_spec import ActionFormat, Reporter
from fedbandit_envs.core.privacy import COVARIANCE, Sensitivity, variance_of
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.core.wrapper import FederatedWrapper, layers
from fedbandit_envs.randomness.streams import Purpose, row_keys
from fedbandit_envs.wrappers.transport.server_policy import bits_of, read_declared

_RESERVED = ("mask", "own", COVARIANCE)


class Messages(FederatedWrapper):
    """A wrapper in which agents release messages that they write themselves, in place of the environment's statistics.

    A message consists of named arrays, such as a gradient, a model or a set of arms, whose shapes and dtypes are
    declared here: ``float16`` to ``float64``, an integer type, or ``bool``. Who writes it:

    * **the policy**, in its action, which becomes ``Dict({"action": <the environment's>, "message": Dict(...)})``: in
      the batch API a mapping of ``action`` and ``message``, the latter a mapping of arrays ``(replicas, agents, ...)``.
      The action formats for learning agents gain the entry ``message``, too; where a format's choices are a flat box,
      ``"{name}_and_message"`` has action and message in one box. A release contains the
      message that the agent has written last, or zeros if it has written none since its last release. Messages of
      agents that are inactive in a round (:class:`~fedbandit_envs.wrappers.Participation`) are ignored;
    * **a reporter** (:class:`~fedbandit_envs.core.policy_spec.Reporter`), an object on the agents' side, which is given
      each agent's own observations of the environment inside of this wrapper (without inboxes) and asked for a report
      at each release. Actions then stay as they are. A server can ask a question (:meth:`ask`). Arrays declared
      with ``"asked": True`` are 0 except in replies to questions, in which all others are 0 and cost no bytes.

    Placebo, Byzantine, quota, noise and transports act on messages as on statistics. Inside of this wrapper may be only
    wrappers that leave releases alone. Numbers are rounded to the declared dtype and released as float64. Messages that
    are not finite, or do not fit the dtype, are errors; if the policy writes them, the state does not change.
    Transports count their numbers by the declared size: an array of bool has one bit for each entry.

    How a message depends on the agent's data is unknown, so that its sensitivity is infinite, and a privatizer without
    ``clip`` refuses it ("authored message without a clip"): nothing could be claimed, and noise would have no scale.
    Without a privatizer epsilon is infinite. With a clip claims hold under the adjacency ``agent``. Under the
    environment's own adjacencies they have the same epsilon, and a reason that says so: one event may change this
    message and all later ones.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Messages(parallel_env(num_agents=2, num_arms=3), {"vote": {"shape": [3], "dtype": "bool"}})
        >>> reset, vote = env.reset_batch([0]), np.array([[[True, False, True], [False, False, True]]])
        >>> step = env.step_batch({"action": np.zeros((1, 2), np.int64), "message": {"vote": vote}})
        >>> env.release(np.array([[True, False]]))["vote"].tolist()
        [[[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]]
    """

    layer = "data"
    message_bits: Mapping[str, int] = {}
    asked_arrays: frozenset[str] = frozenset()
    examples = (
        {"arrays": {"gradient": {"shape": [3], "dtype": "float32"}, "age": {"shape": [], "dtype": "int16"}}},
        {"arrays": {"model": {"shape": [2, 2]}, "votes": {"shape": [5], "dtype": "bool"}}},
    )

    def __init__(
        self,
        env: FederatedEnv,
        arrays: Mapping[str, Mapping[str, Any]],
        reporter: Reporter | str | Mapping[str, Any] | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment; wrappers around it, if any, must leave releases alone.
            arrays: The arrays of a message by name, each a mapping of ``shape``, a sequence of integers >= 1 (empty for
                a single number); ``dtype``, by default ``"float64"``; and ``asked``, by default False, which needs a
                reporter.
            reporter: The object that writes the messages, which is copied; its class as ``"module:Class"``, or a
                mapping of this ``name`` and arguments. None if the policy writes them.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A name, shape or dtype is not allowed, or a wrapper inside changes releases.
        """
        super().__init__(env)
        for level in layers(env):
            if isinstance(level, FederatedWrapper) and type(level)._release is not FederatedWrapper._release:
                name = type(level).__name__
                raise ValueError(
                    f"env has {name}, which changes releases; {name} outside of Messages is required"
                )
        if not isinstance(arrays, Mapping) or not arrays:
            raise TypeError(f"arrays is {arrays!r}; a mapping of names to shapes and dtypes is required")
        self._question: Arrays | None = None
        for name in arrays:
            if name in _RESERVED or name.endswith(variance_of("")):
                raise ValueError(
                    f"arrays has the name {name!r}; one that is not in {_RESERVED} and does not end in "
                    f"{variance_of('')!r} is required"
                )
        self._dtypes = read_declared("arrays", arrays, lambda declared: _dtype(**declared))
        self.message_bits = {name: bits_of(dtype) for name, dtype in self._dtypes.items()}
        self.asked_arrays = frozenset(name for name, declared in arrays.items() if declared.get("asked"))
        if self.asked_arrays and reporter is None:
            raise ValueError(
                f"reporter is None; one is required to fill {sorted(self.asked_arrays)} when asked"
            )
        limits = {name: _limits(tuple(arrays[name]["shape"]), dtype) for name, dtype in self._dtypes.items()}
        self._checks = {
            name: ActionCheck(box, env.possible_agents, what=f"message {name!r}")
            for name, box in limits.items()
        }
        unbounded: dict[str, spaces.Space] = {
            name: spaces.Box(-np.inf, np.inf, box.shape, np.float64) for name, box in limits.items()
        }
        self.single_release_space = spaces.Dict(unbounded)
        self._reporter = None if reporter is None else deepcopy(make("reporter", reporter, {}, Reporter))
        if self._reporter is None:
            message = spaces.Dict({name: _written(box, self._dtypes[name]) for name, box in limits.items()})
            self.single_action_space = spaces.Dict(add_entry(env.single_action_space, "message", message))
            formats = env.action_formats.items()
            self.action_formats = {name: WithEntry(each, "message", message) for name, each in formats} | {
                f"{name}_and_message": _FlatMessage(each, limits)
                for name, each in formats
                if isinstance(each.space, spaces.Box) and FlatSending.fits(each.space)
            }

    def ask(self, question: Arrays | None) -> None:
        """Sets the question that the reporter answers in the next release; see :meth:`Reporter.report`.

        Args:
            question: Arrays by name with leading axes ``(replicas, agents)``; None to withdraw a question.

        Raises:
            ValueError: There is no reporter.
        """
        if self._reporter is None:
            raise ValueError(f"reporter is None, so that nobody answers {question!r}; a reporter is required")
        self._question = question

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, in which nothing has been written; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._written = zeros(self.single_release_space, self._ledger.shape)
        self._question = None
        if self._reporter is not None:
            keys = row_keys([int(seed) for seed in seeds], self.max_num_agents, Purpose.REPORT)
            self._reporter.reset(self.policy_spec, keys.view(np.uint64)[..., 0])
            self._reporter.observe(reset.observation)
        return reset

    def step_batch(self, action: Any) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`.

        Args:
            action: The environment's actions; if the policy writes messages, a mapping of ``action`` and ``message``.

        Raises:
            EntryRequiredError: The action has no message.
            ValueError: A message has the wrong names or shapes, or a number that is not finite or does not fit.
        """
        if self._reporter is not None:
            step = self.env.step_batch(action)
            self._reporter.observe(step.observation)
            return step
        latest = self._written
        require_action_entries(
            action, ("action", "message"), f"agents write messages ({type(self).__name__})"
        )
        written = self._checked(action["message"])
        # Copied, since the problem overwrites the array at the end of the round with who acts in the next one.
        active = np.array(getattr(self.unwrapped, "_active", True))
        step = self.env.step_batch(action["action"])
        for name, array in latest.items():
            np.copyto(array, written[name], where=spread(np.broadcast_to(active, self._ledger.shape), array))
        return step

    def _release(self, sends: Array) -> Arrays:
        written = self._written
        if self._reporter is not None and sends.any():
            written = self._checked(self._reporter.report(self._question))
            for name, array in written.items():
                if self.asked_arrays and (name in self.asked_arrays) != (self._question is not None):
                    array[...] = 0.0
            self._question = None
        released = {name: np.where(spread(sends, array), array, 0.0) for name, array in written.items()}
        for array in self._written.values():
            array[sends] = 0.0
        return released

    def _checked(self, message: Any) -> Arrays:
        """Returns a message rounded to its declared dtypes, as float64; raises an error if it is not valid."""
        if not isinstance(message, Mapping) or message.keys() != self._dtypes.keys():
            found = list(message) if isinstance(message, Mapping) else repr(message)
            raise ValueError(f"message is {found}; a mapping of {list(self._dtypes)} is required")
        rounded = {}
        for name, dtype in self._dtypes.items():
            array = message[name]
            if isinstance(array, np.ndarray) and array.dtype == np.bool_:
                array = array.astype(np.int8)
            array = self._checks[name](array, self._ledger.shape[0])
            rounded[name] = array.astype(dtype).astype(np.float64)
        return rounded

    def sensitivity(self) -> Sensitivity:
        """Returns the sensitivity of a message, of which nothing is known without a clip.

        Scales are infinite, since one altered event may change a message by any amount, and there is no adjacency under
        which privacy could be claimed; see :class:`Sensitivity`.
        """
        return Sensitivity({name: np.full_like(array, np.inf) for name, array in self._written.items()}, {})


class _FlatMessage:
    """An action format that consists of another format's choice and a message, in one flat box.

    It serves learners that accept no ``Dict`` space, and learners that choose for all agents at once. The box has the
    other format's m entries and then those of the message's arrays, in the order of their names. Entries of
    floating-point arrays lie in [-1, 1]. Entries of other arrays lie within the declared range, which is [0, 1] for
    bits, and are rounded.
    """

    def __init__(self, action_format: ActionFormat, arrays: Mapping[str, spaces.Box]) -> None:
        self._format, self._arrays = action_format, dict(sorted(arrays.items()))
        inner = action_format.space
        assert isinstance(inner, spaces.Box)
        parts = (
            spaces.Box(-1, 1, box.shape) if box.dtype.kind == "f" else box for box in self._arrays.values()
        )
        flat = flatten_space(spaces.Tuple([inner, *parts]))
        assert isinstance(flat, spaces.Box)
        low, high = flat.low.astype(inner.dtype), flat.high.astype(inner.dtype)
        self.space: spaces.Space = spaces.Box(low, high, dtype=inner.dtype.type)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Mapping[str, Any]:
        """Returns the environment's action, a mapping with the entry ``message``, from an element of the flat space."""
        start = prod(self._format.space.shape or ())
        action = self._format.to_action(choice[..., :start], observation)
        require_finite("choice", choice)
        message = {}
        for name, box in self._arrays.items():
            stop = start + prod(box.shape)
            numbers = choice[..., start:stop].reshape(*choice.shape[:2], *box.shape).astype(np.float64)
            rounded = numbers if box.dtype.kind == "f" else np.clip(np.rint(numbers), box.low, box.high)
            message[name], start = rounded.astype(box.dtype), stop
        return add_entry(action, "message", message)


def _dtype(shape: Sequence[int], dtype: str = "float64", asked: bool = False) -> np.dtype:
    """Returns the dtype of a declared array, after checking the declaration."""
    for place, size in enumerate(shape):
        require_integer(f"shape[{place}]", size, 1)
    require_flag("asked", asked)
    declared: np.dtype = np.dtype(dtype)
    if declared.kind not in "fiub" or declared.itemsize > 8:
        raise ValueError("dtype must be a floating-point type of at most 64 bits, an integer type or 'bool'")
    return declared


def _limits(shape: tuple[int, ...], dtype: np.dtype) -> spaces.Box:
    """Returns the box of the finite numbers of a dtype; of integers only those that float64 represents."""
    if dtype.kind == "f":
        most = float(np.finfo(dtype).max)
        return spaces.Box(-most, most, shape, np.float64)
    if dtype == np.bool_:
        return spaces.Box(0, 1, shape, np.int8)
    low, high = max(np.iinfo(dtype).min, -MOST), min(np.iinfo(dtype).max, MOST)
    return spaces.Box(low, high, shape, dtype.type)


def _written(limits: spaces.Box, dtype: np.dtype) -> spaces.Space:
    """Returns the space of an array in actions, which has no bounds for floating-point numbers."""
    if dtype == np.bool_:
        return spaces.MultiBinary(limits.shape)
    return spaces.Box(-np.inf, np.inf, limits.shape, dtype.type) if dtype.kind == "f" else limits
