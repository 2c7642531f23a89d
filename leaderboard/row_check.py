"""Checks that a policy's action for one agent in one replica (a row) depends on no other row's data.

A policy that sees a few rows alone must choose the same actions as one that sees all rows. :class:`RowCheck` plays such
rows beside the policy, in one process, which suffices where policies are trusted not to talk to each other.
:class:`RowsAlone` and :class:`WholeRun` play an episode twice, so that the two policies need not exist at one time.
"""

from collections.abc import Callable, Mapping
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np

from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.core.policy_spec import PolicySpec

# Largest size of an episode's actions that are kept in memory, in bytes.
_IN_MEMORY = 64 * 2**20


class MixedRowsError(RuntimeError):
    """A policy's action for a row differs from its action if it sees that row alone: it uses data of other rows."""


class Actions:
    """The actions of an episode, written round by round and then read in the same order.

    They are in a temporary file if they are many; integers are written with as few bytes as hold them.

    Example:
        >>> kept = Actions()
        >>> kept.write(np.array([[3, 1]]))
        >>> kept.begin()
        >>> kept.read()
        array([[3, 1]], dtype=uint8)
    """

    def __init__(self) -> None:
        """Opens the file, which is removed when this object is no longer used."""
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - open as long as this object
        self._names: list[str] | None = None

    def write(self, action: Any) -> None:
        """Appends the actions of a round.

        Args:
            action: An array, or arrays by name; with leading axes ``(replicas, agents)``.
        """
        self._names = list(action) if isinstance(action, Mapping) else None
        for part in action.values() if isinstance(action, Mapping) else [action]:
            array = np.asarray(part)
            if array.dtype.kind in "iu":
                least, most = np.min_scalar_type(array.min()), np.min_scalar_type(array.max())
                array = array.astype(np.promote_types(least, most))
            np.save(self._file, array)

    def begin(self) -> None:
        """Lets :meth:`read` begin with the first round."""
        self._file.seek(0)

    def read(self) -> Any:
        """Returns the actions of the next round, as they were given to :meth:`write` but for the dtype of integers."""
        if self._names is None:
            return np.load(self._file)
        return {name: np.load(self._file) for name in self._names}


class _Rows:
    """Some rows of each replica.

    Attributes:
        place: Replica and agent of each row, int64 ``(replicas, rows, 2)``.
    """

    def __init__(self, agents: Array) -> None:
        """Takes the agents of each replica, ``(replicas, rows)``."""
        self.place = np.stack(
            [np.broadcast_to(np.arange(len(agents))[:, None], agents.shape), agents], axis=2
        )
        self._index = (np.arange(len(agents))[:, None], agents)

    def of(self, array: Any) -> Array:
        """Returns these rows of an array ``(replicas, agents, ...)``, as a copy ``(replicas, rows, ...)``."""
        rows: Array = np.asarray(array)[self._index]
        return rows

    def require_same(self, among_all: Any, alone: Any, played: int) -> None:
        """Checks that actions for all rows have, for these rows, the given actions; see :func:`_require_same`."""
        _require_same(_each(among_all, self.of), alone, self.place, played)


class RowsAlone:
    """A policy that lets another one, which sees one row of each replica alone, play an episode in these rows.

    Attributes:
        round: Number of rounds that have been played in the episode.
    """

    def __init__(self, policy: Policy, agents: Array, whole: Actions | None = None) -> None:
        """Prepares the episode.

        Args:
            policy: The policy that sees the rows alone; its arrays have the leading axes ``(replicas, 1)``.
            agents: The agent of each replica that it plays, ``(replicas, 1)``.
            whole: The actions of a policy that has seen all rows in this episode: they are played again, and those for
                the rows must be the same. With None there are no such actions yet: all agents of a replica act like the
                one that is played alone, which is of no consequence where agents do not interact.
        """
        self._policy = policy
        self._rows = _Rows(agents)
        self._whole = whole
        self._kept = Actions()
        self.round = 0

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Resets the policy that sees the rows alone; see :meth:`Policy.reset`."""
        self._policy.reset(spec, self._rows.of(seeds))
        self._size = seeds.shape[1]
        if self._whole is not None:
            self._whole.begin()
        self.round = 0

    def act(self, observation: Arrays) -> Any:
        """Returns the actions of all rows; see :meth:`Policy.act`.

        Raises:
            MixedRowsError: An action differs from that of the policy that has seen all rows.
        """
        self.round += 1
        alone = self._policy.act({name: self._rows.of(array) for name, array in observation.items()})
        if self._whole is not None:
            action = self._whole.read()
            self._rows.require_same(action, alone, self.round)
            return action
        self._kept.write(alone)
        return _each(alone, lambda part: np.repeat(part, self._size, axis=1))

    @property
    def actions(self) -> Arrays:
        """Actions of the episode that was played, by name, ``(rounds, replicas, 1, ...)``; a bare array is ``""``."""
        self._kept.begin()
        rounds = [_parts("", self._kept.read()) for _ in range(self.round)]
        return {name: np.stack([action[name] for action in rounds]) for name in rounds[0]}


class WholeRun:
    """A policy that plays all rows of an episode, and is compared with one that has seen, or will see, rows alone.

    Attributes:
        actions: The actions of the episode so far; None if rows have been played alone before.
        round: Number of rounds that have been played in the episode.
    """

    def __init__(self, policy: Policy, agents: Array, alone: Arrays) -> None:
        """Prepares the episode.

        Args:
            policy: The policy that plays all rows.
            agents: The agents of each replica that have been played alone, ``(replicas, rows)``.
            alone: Their actions by name, ``(rounds, replicas, rows, ...)``, see :attr:`RowsAlone.actions`; empty if
                they will be played alone after this episode.
        """
        self._policy = policy
        self._rows = _Rows(agents)
        self._alone = alone
        self.actions = None if alone else Actions()
        self.round = 0

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Resets the policy; see :meth:`Policy.reset`."""
        self._policy.reset(spec, seeds)
        self.round = 0

    def act(self, observation: Arrays) -> Any:
        """Returns the policy's actions; see :meth:`Policy.act`.

        Raises:
            MixedRowsError: An action for a row that has been played alone differs from the one in that episode.
        """
        action = self._policy.act(observation)
        self.round += 1
        if self.actions is not None:
            self.actions.write(action)
        else:
            alone = {name: part[self.round - 1] for name, part in self._alone.items()}
            self._rows.require_same(action, alone.get("", alone), self.round)
        return action


class RowCheck:
    """A policy that checks another one: it acts like that policy, and plays a few rows alone, too, for comparison.

    A row is one agent in one replica. For each checked row another policy of the same kind sees that row's observations
    only, and must choose the same actions. A policy that uses the observations of all rows would have data that no
    message has carried and no privacy claim covers; the check finds this if it changes the action of a checked row.
    Data that a policy shares through its class or module are not found, since the policies that play alone use them,
    too. Which rows are checked follows from the seeds, which the policy knows: this finds mistakes, not cheats.

    Attributes:
        rows: The checked rows, ``(replica, agent)`` each; known after reset.
        round: Number of rounds that have been played in the episode.

    Example:
        >>> from fedbandit_envs.baselines.arms import UCB1
        >>> from fedbandit_envs.experiments import simulate
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> check = RowCheck(UCB1(), UCB1, most=2)
        >>> result = simulate(parallel_env(num_agents=3, max_cycles=5), check, seeds=[0])
        >>> len(check.rows)
        2
    """

    def __init__(self, policy: Policy, make_alone: Callable[[], Policy], most: int = 3) -> None:
        """Prepares the check of ``policy``.

        Args:
            policy: The policy that is checked; it plays all rows.
            make_alone: Function that makes another policy of the same kind, for one row.
            most: Number of rows that are checked (all of them if there are fewer).
        """
        self._policy = policy
        self._make_alone = make_alone
        self._most = most
        self.rows: list[tuple[int, int]] = []
        self.round = 0

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Draws the rows to check, and resets the policy and those that play alone; see :meth:`Policy.reset`."""
        self._policy.reset(spec, seeds)
        order = np.random.default_rng(seeds.ravel().tolist()).permutation(seeds.size)
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
            seen = Buffers({name: _only(row, array) for name, array in observation.items()})
            try:
                alone = policy.act(seen.views)
            except Exception as error:
                where = f"replica {row[0]}, agent {row[1]}, round {self.round}"
                error.add_note(f"raised by a policy that sees {where} alone")
                raise
            _require_same(_each(action, partial(_only, row)), alone, np.array([[row]]), self.round)
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


def _each(action: Any, change: Callable[[Any], Array]) -> Any:
    """Returns an action with a function applied to each of its arrays; an action is an array, or arrays by name."""
    if isinstance(action, Mapping):
        return {name: _each(part, change) for name, part in action.items()}
    return change(action)


def _parts(name: str, action: Any) -> dict[str, Any]:
    """Returns the arrays of an action, which may be nested mappings, by name; an array alone has the given name."""
    if not isinstance(action, Mapping):
        return {name: action}
    return {key: array for inner, part in action.items() for key, array in _parts(inner, part).items()}


def _require_same(among_all: Any, alone: Any, rows: Array, played: int) -> None:
    """Checks that two policies choose the same actions for some rows.

    Args:
        among_all: Actions for these rows of the policy that sees all rows; leading axes as those of ``rows``.
        alone: Actions of the policy that sees the rows alone.
        rows: Replica and agent of each row; the last axis has length 2.
        played: The round, counted from 1.

    Raises:
        MixedRowsError: The actions differ.
    """
    ours, theirs = _parts("action", among_all), _parts("action", alone)
    place: tuple[int, ...] = (0, 0)
    difference = ""
    if ours.keys() != theirs.keys():
        difference = f"{list(ours)} is chosen among all rows, {list(theirs)}"
    for name in ours.keys() & theirs.keys():
        here, there = np.asarray(ours[name]), np.asarray(theirs[name])
        if here.shape != there.shape:
            difference = f"{name} has shape {here.shape} among all rows, {there.shape}"
        elif (here != there).any():
            first = tuple(map(int, np.argwhere(here != there)[0]))
            place = first[:2]
            entry = list(first[2:]) or ""
            difference = f"{name}{entry} is {here[first]} among all rows, {there[first]}"
    if difference:
        replica, agent = rows[place].tolist()
        raise MixedRowsError(
            f"replica {replica}, agent {agent}, round {played}: {difference} by a policy of the same kind that sees "
            "this row alone; what a row does may depend on its own observations and its seed, on nothing else"
        )
