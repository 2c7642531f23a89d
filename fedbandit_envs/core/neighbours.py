"""Pairs of neighbouring histories of one agent, as environments to play, for audits of privacy claims."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Adjacency


class History(NamedTuple):
    """One agent's experience in one round.

    Attributes:
        settings: Arguments of the environment, all but the number of agents and of rounds.
        action: The agent's action, an element of the action space.
    """

    settings: Mapping[str, Any]
    action: Array


class Neighbours(NamedTuple):
    """Two neighbouring histories; each window, from one release to the next, is one round.

    Attributes:
        before: The round in the windows in which the histories differ, in the first history.
        after: The same round in the second history.
        idle: The agent's action in windows in which the histories do not differ.
    """

    before: History
    after: History
    idle: Array


def pairs_of(
    pairs: Mapping[Adjacency, Iterable[tuple[History, History]]], adjacency: Adjacency, idle: Array
) -> list[Neighbours]:
    """Returns the neighbouring histories of an adjacency.

    Args:
        pairs: The two histories of each pair, by adjacency.
        adjacency: The adjacency asked for; one that is missing from ``pairs`` has no neighbours.
        idle: The agent's action in windows in which histories do not differ.
    """
    return [Neighbours(before, after, idle) for before, after in pairs.get(adjacency, ())]
