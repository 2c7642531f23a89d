"""Checks of actions, and of messages, against one agent's space; errors name the agent, the entry and the value."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.simplex import TOLERANCE, Simplex


@kernel
def _all_lie_within(values, least, most):
    outside = np.int32(0)
    for i in range(values.size):
        value = values[i]
        # value != value is true for NaN only. The operator | is used instead of "or", since without branches LLVM uses
        # vector instructions.
        outside |= np.int32((value < least) | (value > most) | (value != value))
    return outside == 0


def lies_within(values: Array, least: float, most: float) -> bool:
    """Returns whether all numbers of an array lie in ``[least, most]``; False if any is NaN."""
    inside: bool = _all_lie_within(values.reshape(-1), least, most)
    return inside


class ActionCheck:
    """Checks arrays of actions, one action for each agent, against an action space."""

    def __init__(
        self, space: spaces.Space[Any], agents: Sequence[str], open_above: bool = False, what: str = "action"
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
        if isinstance(space, spaces.Discrete):
            least, most = space.start, space.start + space.n - 1
        elif isinstance(space, spaces.MultiDiscrete):
            least, most = space.start, space.start + space.nvec - 1
        elif isinstance(space, spaces.Box):
            least, most = space.low, space.high
        else:
            raise TypeError(f"single_action_space is {space}; a Discrete, MultiDiscrete or Box is required")
        self._whole = not (isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating))
        self._kinds = "iu" if self._whole else "f"
        self._dtype = np.dtype(np.int64 if self._whole else np.float64)
        # Only these dtypes are passed to kernels, so that no more variants of them have to be compiled.
        self._taken = {self._dtype, np.dtype(np.int32)} if self._whole else {self._dtype}
        self._shape = (len(agents), *(space.shape or ()))
        self._agents = list(agents)
        self._what = what
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
        if not isinstance(action, np.ndarray):
            raise TypeError(f"{self._what} is a {type(action).__name__}; a numpy array is required")
        if action.shape != (replicas, *self._shape):
            raise ValueError(
                f"{self._what} has shape {action.shape}; (replicas, agents, ...) = "
                f"{(replicas, *self._shape)} is required"
            )
        dtype = action.dtype
        if dtype.kind not in self._kinds:
            self._refuse_kind(action)
        if dtype == np.uint64:
            self._refuse_values(action, action < 2**63)
        taken = np.asarray(action, dtype if dtype in self._taken else self._dtype, order="C")
        if not lies_within(taken, self._least_of_all, self._most_of_all):
            self._refuse_values(action, (action >= self._least) & (action <= self._most))
        if self._sums_to_one:
            self._refuse_sums(taken)
        return taken

    def _refuse_sums(self, action: Array) -> None:
        total = action.sum(axis=-1)
        right = np.abs(total - 1.0) <= TOLERANCE
        if not right.all():
            replica, agent = (int(i) for i in np.argwhere(~right)[0][:2])
            raise ValueError(
                f"{self._what} of {self._agents[agent]} (replica {replica}) sums to {total[~right][0]:.9g} over its "
                f"{action.shape[-1]} entries; 1, up to {TOLERANCE:g}, is required"
            )

    def _refuse_kind(self, action: Array) -> None:
        if self._whole and np.issubdtype(action.dtype, np.floating):
            # If a value is out of range, the error reports it rather than the wrong dtype.
            within = (action >= self._least) & (action <= self._most)
            self._refuse_values(action, within & (action == np.floor(action)))
        kind = "an integer" if self._whole else "a floating-point"
        raise TypeError(f"{self._what} has dtype {action.dtype}; {kind} dtype is required")

    def _refuse_values(self, action: Array, valid: Array) -> None:
        if valid.all():
            return
        replica, agent, *entry = (int(i) for i in np.argwhere(~valid)[0])
        least, most = (
            np.broadcast_to(end, self._shape[1:])[tuple(entry)] for end in (self._least, self._most)
        )
        allowed = f"in [{least}, {most}]" if most < (2**63 - 1 if self._whole else np.inf) else f">= {least}"
        place = f", entry {entry if len(entry) > 1 else entry[0]}," if entry else ""
        raise ValueError(
            f"{self._what} of {self._agents[agent]} (replica {replica}){place} is {action[(replica, agent, *entry)]}; "
            f"{'an integer' if self._whole else 'a number'} {allowed} is required"
        )
