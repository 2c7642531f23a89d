"""Schedules: the rounds in which agents send, fixed in advance or requested by agents.

A schedule decides about round t, counted from 1, after that round's outcomes are known. Wherever a schedule is an
argument, its JSON-able specification is accepted: a name, ``"every_round"``, or a mapping of the name and the
arguments, ``{"name": "fixed_gap", "gap": 10}``.

| name | arguments | which agents send, and when |
|---|---|---|
| `silent` | | none, ever |
| `every_round` | | all, in every round |
| `fixed_gap` | `gap` | all, every `gap` rounds |
| `doubling` | `start`, `stop`, `mode` | all, when the round is a power of two in a range |
| `growing_then_fixed` | `limit` | all, after gaps that double up to a limit |
| `geometric` | `count`, `horizon` | all, in `count` rounds in geometric progression |
| `on_request` | | those that ask |
| `synchronise` | | all, when one asks |

The first six (:mod:`fedbandit_envs.wrappers.transport.fixed_schedules`) are fixed in advance; the last two
(:mod:`fedbandit_envs.wrappers.transport.requested_schedules`) are not.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.config import make
from fedbandit_envs.wrappers.transport.fixed_schedules import (
    Doubling,
    EveryRound,
    FixedGap,
    Geometric,
    GrowingThenFixed,
    Silent,
)
from fedbandit_envs.wrappers.transport.requested_schedules import OnRequest, Synchronise


@runtime_checkable
class Schedule(Protocol):
    """A rule that decides which agents send in which rounds.

    Attributes:
        fixed_in_advance: Whether sending times are known before any data. If not, agents choose in each round whether
            to send, and the choice may reveal something about their data.
        needs_all_connected: Whether every agent must be able to reach every other.
    """

    @property
    def fixed_in_advance(self) -> bool:
        """Whether sending times are known before any data."""

    @property
    def needs_all_connected(self) -> bool:
        """Whether every agent must be able to reach every other."""

    def senders(self, t: int, asked: Array) -> Array:
        """Returns which agents send in a round, bool ``(replicas, agents)``.

        Args:
            t: The round, counted from 1.
            asked: Which agents ask to send, bool ``(replicas, agents)``; all, where agents do not choose.
        """

    def count(self, horizon: int) -> int:
        """Returns the largest number of rounds among 1 to ``horizon`` in which an agent sends.

        Privacy mechanisms plan for it. It is exact where rounds are fixed in advance.
        """


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "silent": Silent,
    "every_round": EveryRound,
    "doubling": Doubling,
    "fixed_gap": FixedGap,
    "growing_then_fixed": GrowingThenFixed,
    "geometric": Geometric,
    "on_request": OnRequest,
    "synchronise": Synchronise,
}
"""The schedules by the name in their specification."""


def make_schedule(spec: Schedule | str | Mapping[str, Any]) -> Schedule:
    """Returns the schedule of a specification; a schedule is returned as it is.

    Args:
        spec: A schedule, a name of :data:`SCHEDULES`, or a mapping of ``name`` and the schedule's arguments.

    Raises:
        TypeError: The specification is none of these, or has arguments the schedule does not know.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    return make("schedule", spec, SCHEDULES, Schedule)
