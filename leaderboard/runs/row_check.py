"""A check that a policy's action for one agent in one replica (a row) depends on no other row's data.

While the policy plays all rows, a few rows are also played alone, and must get the same actions.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.core.policy_spec import PolicySpec


class MixedRowsError(RuntimeError):
    """A policy's action for a row differs from its action if it sees that row alone: it uses data of other rows."""


class RowCheck:
    """A policy that checks another one: it acts like that policy, and plays a few rows alone, too, for comparison.

    A row is one agent in one replica. For each checked row another policy of the same kind sees that row's observations
    only, and must choose the same actions. A policy that uses the observations of all rows would have data that no
    message has carried and no privacy claim covers; the check finds this if it changes the action of a checked row.
    Data that a policy shares through its class or module are not found, since the policies that play alone use them,
    too.

    Attributes:
        rows: The checked rows, ``(replica, agent)`` each; known after reset.
        round: Number of rounds that have been played in the episode.

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
        """Prepares the check of ``policy``.

        Args:
            policy: The policy that is checked; it plays all rows.
            make_alone: Function that makes another policy of the same kind, for one row.
            most: Number of rows that are checked (all of them if there are fewer).
            entropy: Secret number from which, together with the seeds, the checked rows are drawn. Without it (None) a
                policy, which knows the seeds, could find out the checked rows and use other rows' data elsewhere.
        """
        self._entropy = [] if entropy is None else [entropy]
        self._policy = policy
        self._make_alone = make_alone
        self._most = most
        self.rows: list[tuple[int, int]] = []
        self.round = 0

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Draws the rows to check, and resets the policy and those that play alone; see :meth:`Policy.reset`."""
        self._policy.reset(spec, seeds)
        order = np.random.default_rng([*self._entropy, *seeds.ravel().tolist()]).permutation(seeds.size)
        self.rows = [divmod(int(pick), seeds.shape[1]) for pick in np.sort(order[: self._most])]
        self._alone = [self._make_alone() for _ in self.rows]
        for policy, row in zip(self._alone, self.rows, strict=True):
            policy.reset(spec, _only(row, seeds))
        self.round = 0

    def act(self, observation: Arrays) -> Any:
        """Returns the action of the checked policy, after the comparison; see :meth:`Policy.act`.

        Raises:
            MixedRowsError: The action for a checked row differs from that of a policy which sees this row alone.
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
    """Returns one row of an array as an array with one replica and one agent, ``(1, 1, ...)``.

    It is a copy, since a policy could get from a view to the other rows.

    Args:
        row: Replica and agent.
        array: Array ``(replicas, agents, ...)``.
    """
    replica, agent = row
    return np.array(np.asarray(array)[replica : replica + 1, agent : agent + 1])


def _parts(name: str, action: Any) -> dict[str, Any]:
    """Returns the arrays of an action, which may be nested mappings, by name; an array alone has the given name."""
    if not isinstance(action, Mapping):
        return {name: action}
    return {key: array for inner, part in action.items() for key, array in _parts(inner, part).items()}


def _difference(action: Any, alone: Any, row: tuple[int, int]) -> str:
    """Returns a description of how two actions for one row differ; empty if they are equal.

    Args:
        action: The action of the policy that plays all rows.
        alone: The action of the policy that sees the row alone.
        row: Replica and agent.
    """
    among_all, by_itself = _parts("action", action), _parts("action", alone)
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
