"""Checks, while a policy plays all rows, that it plays each of a few rows as it would that row alone."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.core.policy_spec import PolicySpec


class MixedRowsError(RuntimeError):
    """A policy chooses for a row otherwise than for that row alone: it uses other rows' data past the environment."""


class RowCheck:
    """A policy that is checked: for a few rows, policies of the same kind see that row alone and must choose the same.

    A row is one agent in one replica. A policy that pools what all rows see gains what no transport carried and no
    privacy claim covers; this finds it where a checked row's action changes by it. State that a policy keeps outside
    of itself, in its class or module, is not found: the policies that play alone have it as well.

    Attributes:
        rows: The rows that are checked, ``(replica, agent)``; known after reset.
        round: The round that was played last, from 1; 0 before.

    Example:
        >>> from fedbandit_envs.baselines.arms import UCB1
        >>> from fedbandit_envs.leaderboard import simulate
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> check = RowCheck(UCB1(), UCB1, most=2)
        >>> result = simulate(parallel_env(num_agents=3, max_cycles=5), check, seeds=[0])
        >>> len(check.rows)
        2
    """

    def __init__(
        self, policy: Policy, make_alone: Callable[[], Policy], most: int = 3, entropy: int | None = None
    ) -> None:
        """Checks ``policy``.

        Args:
            policy: Plays all rows.
            make_alone: Makes another policy of its kind.
            most: Number of rows that are checked, if there are so many; they are drawn from the rows' seeds.
            entropy: Entropy of that draw besides the rows' seeds, which a policy knows: one that can foresee the
                checked rows can mix the others. None where no policy would.
        """
        self._entropy = [] if entropy is None else [entropy]
        self._policy = policy
        self._make_alone = make_alone
        self._most = most
        self.rows: list[tuple[int, int]] = []
        self.round = 0

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Draws the rows and prepares all policies; see :meth:`Policy.reset`."""
        self._policy.reset(spec, seeds)
        order = np.random.default_rng([*self._entropy, *seeds.ravel().tolist()]).permutation(seeds.size)
        self.rows = [divmod(int(pick), seeds.shape[1]) for pick in np.sort(order[: self._most])]
        self._alone = [self._make_alone() for _ in self.rows]
        for policy, row in zip(self._alone, self.rows, strict=True):
            policy.reset(spec, _only(row, seeds))
        self.round = 0

    def act(self, observation: Arrays) -> Any:
        """Chooses as the policy does; see :meth:`Policy.act`.

        Raises:
            MixedRowsError: For a checked row, it chooses otherwise than a policy that sees that row alone.
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
    """Returns the difference between a row of an action and the action for that row alone, as text; empty if none."""
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
