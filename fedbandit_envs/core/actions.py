"""Actions: the space of distributions, checks of actions, and the action formats that all problems share."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_valid
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.policy_spec import ActionFormat

TOLERANCE = 1e-6
"""Largest difference from 1 that a sum of probabilities may have, enough for a softmax in float32."""


class Simplex(spaces.Box):
    """A space of probability distributions: entries >= 0 that sum to 1 over the last axis, up to :data:`TOLERANCE`.

    It is a ``Box``, so that libraries that handle boxes handle it. Samples are uniform on the simplex. Batches of it
    are ``Simplex`` spaces with one more axis.

    Example:
        >>> space = Simplex((3,), seed=7)
        >>> space.contains(space.sample()), space.contains(space.sample() / 2)
        (True, False)
    """

    def __init__(self, shape: tuple[int, ...], seed: int | np.random.Generator | None = None) -> None:
        """Sets the space.

        Args:
            shape: Shape of an element; the entries along its last axis sum to 1.
            seed: Seed of samples.
        """
        super().__init__(0.0, 1.0, shape, np.float64, seed)

    def sample(self, mask: None = None, probability: None = None) -> Array:
        """Draws uniformly from the simplex; there are no masks."""
        drawn = self.np_random.standard_exponential(self.shape)
        return drawn / drawn.sum(axis=-1, keepdims=True)

    def contains(self, x: Any) -> bool:
        """Returns whether ``x`` is an element: an array of float64, or of a dtype that fits into it."""
        return (
            isinstance(x, np.ndarray)
            and np.can_cast(x.dtype, self.dtype)
            and x.shape == self.shape
            and bool((x >= 0.0).all() and (np.abs(x.sum(axis=-1) - 1.0) <= TOLERANCE).all())
        )

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, Simplex) and self.shape == other.shape

    def __repr__(self) -> str:
        return f"Simplex({self.shape})"


@batch_space.register(Simplex)
def _batch(space: Simplex, n: int = 1) -> Simplex:
    return Simplex((n, *space.shape), deepcopy(space.np_random))


@kernel
def _lie_within(values, least, most):
    """Returns whether all numbers of an array lie in ``[least, most]``; False if any is NaN."""
    outside = np.int32(0)
    for i in range(values.size):
        value = values[i]
        # value != value is true for NaN only. The operator | is used instead of "or", since without branches LLVM uses
        # vector instructions.
        outside |= np.int32((value < least) | (value > most) | (value != value))
    return outside == 0


def ends_of(space: Any) -> tuple[Any, Any]:
    """Returns the lower and the upper bounds of a box, or of a space of one or several integers."""
    if isinstance(space, spaces.Box):
        return space.low, space.high
    return space.start, space.start + (space.n if isinstance(space, spaces.Discrete) else space.nvec) - 1


class ActionCheck:
    """Checks arrays of actions, one action for each agent, against an action space."""

    def __init__(
        self, space: spaces.Space, agents: Sequence[str], open_above: bool = False, what: str = "action"
    ) -> None:
        """Takes the bounds of the space.

        Args:
            space: One agent's action space: ``Discrete``, ``MultiDiscrete`` or ``Box``, ``Simplex`` among them.
            agents: The agents' names.
            open_above: Whether values above the upper bound are accepted, because the environment handles them itself.
            what: What is checked, for errors.

        Raises:
            TypeError: The space is of another kind.
        """
        if not isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete):
            raise TypeError(f"single_action_space is {space}; a Discrete, MultiDiscrete or Box is required")
        least, most = ends_of(space)
        self._whole = not (isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating))
        self._dtype = np.dtype(np.int64 if self._whole else np.float64)
        # Only these dtypes are passed to kernels, so that no more variants of them have to be compiled.
        self._taken = {self._dtype, np.dtype(np.int32)} if self._whole else {self._dtype}
        self._shape = (len(agents), *(space.shape or ()))
        self._agents, self._what, self._open_above = list(agents), what, open_above
        self._least: Array = np.asarray(least, self._dtype)
        self._most: Array = np.asarray(most, self._dtype)
        if open_above:
            self._most = np.full_like(self._most, 2**63 - 1 if self._whole else np.inf)
        self._sums_to_one = isinstance(space, Simplex)
        if self._sums_to_one:
            # The sum may exceed 1 by a tolerance for rounding, and so may a single entry.
            self._most = self._most + TOLERANCE
        # The interval that lies within the bounds of every entry. Checking it is faster, and in most spaces all entries
        # have the same bounds; only actions outside of it are checked entry by entry.
        self._least_of_all, self._most_of_all = self._least.max().item(), self._most.min().item()

    def __call__(self, action: Any, replicas: int) -> Array:
        """Returns the action as a contiguous array for the kernels: integers as int32 or int64, others as float64.

        Args:
            action: Array ``(replicas, agents, ...)`` of actions.
            replicas: Number of replicas.

        Raises:
            TypeError: The action is no array, or its dtype is of another kind than the space's.
            ValueError: The shape is not ``(replicas, agents, ...)``, or a value is not allowed.
        """
        wanted, axes = (replicas, *self._shape), "(replicas, agents, ...)"
        if not isinstance(action, np.ndarray):
            raise TypeError(f"{self._what} is {action!r}; a numpy array {axes} = {wanted} is required")
        if action.shape != wanted:
            raise ValueError(f"{self._what} has shape {action.shape}; {axes} = {wanted} is required")
        if self._whole and action.dtype == np.uint64:
            action = np.minimum(action, 2**63 - 1).astype(np.int64)
        dtype = action.dtype
        if dtype.kind not in ("iu" if self._whole else "f"):
            if self._whole and dtype.kind == "f":
                # A value that is no allowed integer is named rather than its dtype.
                self._refuse(action, (action >= self._least) & (action <= self._most) & (action % 1 == 0))
            kind = "an integer" if self._whole else "a floating-point"
            raise TypeError(f"{self._what} has dtype {dtype}; {kind} dtype is required")
        taken = np.asarray(action, dtype if dtype in self._taken else self._dtype, order="C")
        if not _lie_within(taken.reshape(-1), self._least_of_all, self._most_of_all):
            self._refuse(action, (action >= self._least) & (action <= self._most))
        if self._sums_to_one:
            total = taken.sum(axis=-1)
            self._refuse(total, np.abs(total - 1.0) <= TOLERANCE, "a sum of 1")
        return taken

    def _refuse(self, found: Array, valid: Array, allowed: str = "") -> None:
        """Raises a ``ValueError`` that names the first entry that is not valid, if there is one."""
        if valid.all():
            return
        replica, agent, *entry = place = tuple(int(i) for i in np.argwhere(~valid)[0])
        at = f", entry {entry if len(entry) > 1 else entry[0]}," if entry else ""
        if not allowed:
            ends = [np.broadcast_to(end, self._shape[1:])[tuple(entry)] for end in (self._least, self._most)]
            allowed = f">= {ends[0]}" if self._open_above else f"in [{ends[0]}, {ends[1]}]"
            allowed = f"{'an integer' if self._whole else 'a number'} {allowed}"
        raise ValueError(
            f"{self._what} of {self._agents[agent]} (replica {replica}){at} is "
            f"{found[place]}; {allowed} is required"
        )


class EntryRequiredError(TypeError):
    """An action lacks an entry beside the environment's own action, such as ``message`` or ``send``."""


def add_entry(action: Any, name: str, entry: Any) -> dict[str, Any]:
    """Returns actions with a further entry: a flat mapping of ``action``, the entries it has already, and the new one.

    It works in the same way for spaces of actions.

    Args:
        action: The environment's actions or their space, or a mapping of them and of other entries.
        name: Name of the new entry.
        entry: The new entry.
    """
    return {**(action if isinstance(action, Mapping) else {"action": action}), name: entry}


def take_entry(action: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    """Returns actions without an entry, and the entry; the reverse of :func:`add_entry`."""
    left = {other: part for other, part in action.items() if other != name}
    return left["action"] if left.keys() == {"action"} else left, action[name]


def require_action_entries(action: Any, names: Collection[str], reason: str) -> None:
    """Raises an error unless an action is a mapping of the given names.

    Args:
        action: The action.
        names: The names.
        reason: Why the environment needs more than an array, for the error.

    Raises:
        EntryRequiredError: The action is no mapping, or has other names; the error has both.
    """
    if isinstance(action, Mapping) and action.keys() == set(names):
        return
    found = f"mapping of {list(action)}" if isinstance(action, Mapping) else type(action).__name__
    raise EntryRequiredError(f"action is a {found}; a mapping of {sorted(names)} is required, since {reason}")


class OwnActions:
    """The environment's own actions as an action format: choices are not translated."""

    def __init__(self, space: spaces.Space) -> None:
        """Takes one agent's action space."""
        self.space = space

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns ``choice`` as it is."""
        return choice


class WithEntry:
    """An action format that consists of another format's choice and one entry that is passed on, such as ``send``.

    Its space is a flat ``Dict`` of ``action``, of entries that the other format has already, and of the new one;
    choices and actions are mappings of arrays with these names.
    """

    def __init__(self, action_format: ActionFormat, name: str, space: spaces.Space) -> None:
        """Adds an entry to a format.

        Args:
            action_format: The other format.
            name: Name of the entry.
            space: Space of the entry.
        """
        self._format, self._name = action_format, name
        self.space: spaces.Space = spaces.Dict(add_entry(action_format.space, name, space))

    def to_action(self, choice: Mapping[str, Any], observation: Mapping[str, Array]) -> Mapping[str, Any]:
        """Returns the environment's action: the other format translates its part, the entry stays as it is."""
        own, entry = take_entry(choice, self._name)
        return add_entry(self._format.to_action(own, observation), self._name, entry)


class Estimates:
    """An action format of numbers in a box, such as estimates of means, which a function translates into actions."""

    def __init__(
        self, size: int, translate: Callable[[Array, Mapping[str, Array]], Array], low: float = -1.0
    ) -> None:
        """Sets the space ``Box(low, 1, (size,))``.

        Args:
            size: Number of entries.
            translate: A function that maps choices ``(replicas, agents, size)`` and observations to actions, and raises
                a ``ValueError`` for entries that it does not accept. It must be picklable.
            low: Lower bound of the entries.
        """
        self.space: spaces.Space = spaces.Box(low, 1.0, (size,), np.float32)
        self.to_action = translate


def require_finite(name: str, choice: Array) -> None:
    """Raises a ``ValueError`` unless all numbers of a choice ``(replicas, agents, entries)`` are finite."""
    require_valid(f"action: {name}", choice, np.isfinite(choice), "finite numbers")


def is_learnable(space: spaces.Space) -> bool:
    """Returns whether learners of other libraries can choose from a space, which must be flat and no ``Simplex``.

    A simplex is a ``Box``, but learners rarely output numbers that sum to exactly 1.
    """
    flat = spaces.Box | spaces.Discrete | spaces.MultiDiscrete
    return isinstance(space, flat) and not isinstance(space, Simplex)


class FlatSending:
    """An action format that consists of another format's choice and the choice of whether to send, in one flat space.

    It serves learners that accept no ``Dict`` space, and control of all agents at once.

    | the other format's space | this format's space | the agent sends if |
    |---|---|---|
    | `Discrete(n)` | `Discrete(2 n)` | its choice is at least n; n + k means choice k and sending |
    | `MultiDiscrete(nvec)` | `MultiDiscrete([*nvec, 2])` | the last entry is 1 |
    | `Box`, `(size,)` | `Box`, `(size + 1,)`, the last in [0, 1] | the last entry exceeds 0.5 |
    """

    def __init__(self, action_format: ActionFormat) -> None:
        """Sets the space according to the table.

        Args:
            action_format: The format to extend; :meth:`fits` must be true for its space.
        """
        self._format = action_format
        inner = action_format.space
        if isinstance(inner, spaces.Discrete):
            self._most, first = int(inner.n), int(inner.start)
            self.space: spaces.Space = spaces.Discrete(2 * self._most, start=first)
        elif isinstance(inner, spaces.MultiDiscrete):
            self.space = spaces.MultiDiscrete([*inner.nvec, 2], dtype=inner.dtype.type)
        elif isinstance(inner, spaces.Box):
            low, high = np.append(inner.low, 0.0), np.append(inner.high, 1.0)
            self.space = spaces.Box(low.astype(inner.dtype), high.astype(inner.dtype), dtype=inner.dtype.type)

    @staticmethod
    def fits(space: spaces.Space) -> bool:
        """Returns whether the table above has a row for ``space``: only then can this class extend a format of it."""
        return isinstance(space, spaces.Discrete) or (is_learnable(space) and len(space.shape or ()) == 1)

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns the environment's action, a mapping with the entry ``send``, from an element of the flat space.

        Raises:
            ValueError: A discrete choice lies outside the space, or a box's last entry is not finite.
        """
        if isinstance(self.space, spaces.Discrete):
            first, end = int(self.space.start), int(self.space.start) + 2 * self._most
            inside = (choice >= first) & (choice < end) & (choice == np.floor(choice))
            require_valid("action", choice, inside, f"integers in [{first}, {end - 1}]")
            send = choice >= self.space.start + self._most
            own = choice - self._most * send
        else:
            own, send = choice[..., :-1], choice[..., -1]
        action = self._format.to_action(own, observation)
        if isinstance(self.space, spaces.Box):
            require_finite("choice", choice)
            send = send > 0.5
        return add_entry(action, "send", send)
