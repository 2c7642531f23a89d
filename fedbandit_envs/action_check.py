"""Checks of actions against the space of one agent's: errors name the agent, the entry and the value."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel
from fedbandit_envs.simplex import TOLERANCE, Simplex


@kernel
def _all_lie_within(values, least, most):
    outside = np.int32(0)
    for i in range(values.size):
        value = values[i]
        # A number that is not itself is NaN. Without branches, for many numbers at a time.
        outside |= np.int32((value < least) | (value > most) | (value != value))
    return outside == 0


def lies_within(values: Array, least: float, most: float) -> bool:
    """Says whether all numbers lie in ``[least, most]``, which NaN does not, in one pass."""
    inside: bool = _all_lie_within(values.reshape(-1), least, most)
    return inside


def require_finite(name: str, choice: Array) -> None:
    """Refuses numbers ``(replicas, agents, entries)`` that a learning agent chose, if one is not finite.

    Raises:
        ValueError: It names agent and entry.
    """
    if not np.isfinite(choice).all():
        replica, agent, entry = (int(i) for i in np.argwhere(~np.isfinite(choice))[0])
        raise ValueError(
            f"action: entry {entry} of the {name} of row {agent} (replica {replica}) is "
            f"{choice[replica, agent, entry]}; a finite number is required"
        )


class ActionCheck:
    """Refuses what is no array of one action an agent."""

    def __init__(self, space: spaces.Space[Any], agents: Sequence[str], open_above: bool) -> None:
        """Reads what is allowed off the space.

        Args:
            space: One agent's action space: ``Discrete``, ``MultiDiscrete`` or ``Box``, ``Simplex`` among them.
            agents: The agents' names.
            open_above: Whether values above the space's are let through, for the environment to deal with.

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
        # What kernels take.
        self._taken = {self._dtype, np.dtype(np.int32)} if self._whole else {self._dtype}
        self._shape = (len(agents), *(space.shape or ()))
        self._agents = list(agents)
        self._least: Array = np.asarray(least, self._dtype)
        self._most: Array = np.asarray(most, self._dtype)
        if open_above:
            self._most = np.full_like(self._most, 2**63 - 1 if self._whole else np.inf)
        self._sums_to_one = isinstance(space, Simplex)
        if self._sums_to_one:
            # An entry above 1 by rounding is as good as a sum that is.
            self._most = self._most + TOLERANCE
        # What all entries may be, which is quicker to see: often that is all there is.
        self._least_of_all, self._most_of_all = self._least.max().item(), self._most.min().item()

    def __call__(self, action: Any, replicas: int) -> Array:
        """Returns the action in the form that kernels take: integers as int32 or int64, others as float64, contiguous.

        Args:
            action: What the agents chose.
            replicas: How many there are.

        Raises:
            TypeError: It is no array, or its dtype is of another kind than the space's.
            ValueError: Its shape is not ``(replicas, agents, ...)``, or a value is not allowed.
        """
        if not isinstance(action, np.ndarray):
            raise TypeError(f"action is a {type(action).__name__}; a numpy array is required")
        if action.shape != (replicas, *self._shape):
            raise ValueError(
                f"action has shape {action.shape}; (replicas, agents, ...) = "
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
                f"action of {self._agents[agent]} (replica {replica}) sums to {total[~right][0]:.9g} over its "
                f"{action.shape[-1]} entries; 1, up to {TOLERANCE:g}, is required"
            )

    def _refuse_kind(self, action: Array) -> None:
        if self._whole and np.issubdtype(action.dtype, np.floating):
            # A bad value is worse than the right ones in the wrong dtype.
            within = (action >= self._least) & (action <= self._most)
            self._refuse_values(action, within & (action == np.floor(action)))
        kind = "an integer" if self._whole else "a floating-point"
        raise TypeError(f"action has dtype {action.dtype}; {kind} dtype is required")

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
            f"action of {self._agents[agent]} (replica {replica}){place} is {action[(replica, agent, *entry)]}; "
            f"{'an integer' if self._whole else 'a number'} {allowed} is required"
        )
