"""Neighbouring histories of one agent, as environments to play: what an attacker may have to tell apart."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fedbandit_envs.arrays import Array


class History(NamedTuple):
    """What an agent lives through in a round.

    Attributes:
        settings: Arguments of the environment, all but the number of agents and of rounds.
        action: What the agent does, an element of the action space.
    """

    settings: Mapping[str, Any]
    action: Array


class Neighbours(NamedTuple):
    """Two neighbouring histories; each window, from one release to the next, is one round.

    Attributes:
        before: What happens in the windows that differ.
        after: What happens there instead.
        idle: What the agent does in windows that do not differ, with ``before`` and with ``after`` alike.
    """

    before: History
    after: History
    idle: Array
