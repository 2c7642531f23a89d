"""Checks, while a policy plays all rows, that it plays each of a few rows as it would that row alone."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.buffers import Buffers
from fedbandit_envs.spaces import Spaces


class MixedRowsError(RuntimeError):
    """A policy acts for a row as it would not for that row alone: it learns of other rows past the environment."""


class RowCheck:
    """A policy, watched: for a few rows, policies of the same kind are fed with that row alone and must do the same.

    A policy that pools what all rows see has a federation of one mind, whatever the wrappers let through and whatever
    is claimed of it. This finds it out where the rows that are looked at gain or lose by it. What a policy keeps
    outside of itself, in its class or module, is not seen: the policies that play alone would find it there as well.

    Attributes:
        rows: The rows that are looked at, ``(replica, agent)``; known from reset on.
        round: The round that was played last, from 1; 0 before.
    """

    def __init__(
        self, policy: Policy, make_alone: Callable[[], Policy], most: int = 3, entropy: int | None = None
    ) -> None:
        """Watches ``policy``.

        Args:
            policy: Plays all rows.
            make_alone: Makes another policy of its kind.
            most: How many rows are looked at, if there are so many; a sample that follows from the rows' seeds.
            entropy: What the sample follows from besides: a policy knows its rows' seeds, and who knows which rows are
                looked at can mix the others. None where nobody would.
        """
        self._entropy = [] if entropy is None else [entropy]
        self._policy = policy
        self._make_alone = make_alone
        self._most = most
        self.rows: list[tuple[int, int]] = []
        self.round = 0

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Draws the rows and prepares all policies; see :meth:`Policy.reset`."""
        self._policy.reset(spaces, seeds)
        picks = np.random.default_rng([*self._entropy, *seeds.ravel().tolist()]).permutation(seeds.size)[
            : self._most
        ]
        self.rows = [divmod(int(pick), seeds.shape[1]) for pick in np.sort(picks)]
        self._alone = [self._make_alone() for _ in self.rows]
        for policy, row in zip(self._alone, self.rows, strict=True):
            policy.reset(spaces, _only(row, seeds))
        self.round = 0

    def act(self, observation: Arrays) -> Any:
        """Chooses as the policy does; see :meth:`Policy.act`.

        Raises:
            MixedRowsError: For a row that is looked at, it chooses otherwise than a policy that sees that row alone.
        """
        action = self._policy.act(observation)
        self.round += 1
        for policy, row in zip(self._alone, self.rows, strict=True):
            where = f"replica {row[0]}, agent {row[1]}, round {self.round}"
            seen = Buffers({name: _only(row, array) for name, array in observation.items()})
            try:
                alone = policy.act(seen.views)
            except Exception as error:
                error.add_note(f"raised by a policy that sees {where} alone")
                raise
            if difference := _difference(action, alone, row):
                raise MixedRowsError(
                    f"{where}: {difference} by a policy of the same kind that sees this row alone; what a "
                    "row does may depend on its own observations and its seed, on nothing else"
                )
        return action


def _only(row: tuple[int, int], array: Any) -> Array:
    """Returns one row of an array in a batch of its own, as a copy: from a view one could find the other rows."""
    replica, agent = row
    return np.array(np.asarray(array)[replica : replica + 1, agent : agent + 1])


def _difference(action: Any, alone: Any, row: tuple[int, int]) -> str:
    """Says in what a row of an action differs from one by a policy that sees the row alone; empty if nowhere."""
    among_all, by_itself = (
        choice if isinstance(choice, Mapping) else {"action": choice} for choice in (action, alone)
    )
    if among_all.keys() != by_itself.keys():
        return f"{list(among_all)} is chosen among all rows, {list(by_itself)}"
    for name, part in among_all.items():
        here, there = _only(row, part), np.asarray(by_itself[name])
        if here.shape != there.shape:
            return f"{name} has shape {here.shape} among all rows, {there.shape}"
        if (differs := np.argwhere(here != there)).size:
            entry = tuple(differs[0])
            place = list(map(int, entry[2:])) or ""
            return f"{name}{place} is {here[entry]} among all rows, {there[entry]}"
    return ""
