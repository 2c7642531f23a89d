"""Pairs of neighbouring histories of one agent, as settings and actions to play, for audits of privacy claims."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Adjacency


class History(NamedTuple):
    """A round of one agent's history: the settings of the environment in which it is played, and the agent's action.

    Attributes:
        settings: Arguments of the environment, except for the numbers of agents and of rounds.
        action: The agent's action, an element of the action space.
    """

    settings: Mapping[str, Any]
    action: Array


class Neighbours(NamedTuple):
    """Two neighbouring histories of one agent, which differ in some of their rounds.

    In each round in which they differ, the agent experiences ``before`` in the first history and ``after`` in the
    second one. In all other rounds it plays the action ``idle`` in both. The agent releases after each round.

    Attributes:
        before: Environment settings and action of the first history in the rounds in which the histories differ.
        after: Environment settings and action of the second history in these rounds.
        idle: The agent's action in all other rounds, the same in both histories.
    """

    before: History
    after: History
    idle: Array


def pairs_of(
    pairs: Mapping[Adjacency, Iterable[tuple[History, History]]], adjacency: Adjacency, idle: Array
) -> list[Neighbours]:
    """Returns the pairs of neighbouring histories under an adjacency, as :class:`Neighbours`.

    Args:
        pairs: The two histories of each pair, by adjacency.
        adjacency: The adjacency; the list is empty if it is missing from ``pairs``.
        idle: The agent's action in rounds in which the histories do not differ.
    """
    return [Neighbours(before, after, idle) for before, after in pairs.get(adjacency, ())]
