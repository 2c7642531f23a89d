"""When agents send: schedules of communication rounds, fixed in advance or left to the agents.

A schedule answers for round t, counted from 1, after that round's outcomes are known. Wherever one is asked
for, its JSON-able specification will do: a name, ``"every_round"``, or a mapping of the name and the
arguments, ``{"name": "fixed_gap", "gap": 10}``.

| name | arguments | who sends, when |
|---|---|---|
| `silent` | | nobody, ever |
| `every_round` | | everybody, always |
| `fixed_gap` | `gap` | everybody, each `gap` rounds |
| `doubling` | `start`, `stop`, `mode` | everybody, when the round is a power of two in a range |
| `growing_then_fixed` | `limit` | everybody, after gaps that double up to a limit |
| `geometric` | `count`, `horizon` | everybody, in `count` rounds in geometric progression |
| `on_request` | | those who ask |
| `synchronise` | | everybody, when somebody asks |

The first six (:mod:`fedbandit_envs.wrappers.transport.fixed_schedules`) are fixed in advance; the last two
(:mod:`fedbandit_envs.wrappers.transport.requested_schedules`) are not.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from fedbandit_envs.arrays import Array
from fedbandit_envs.specification import make
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
    """Says who sends in which rounds.

    Attributes:
        fixed_in_advance: Whether sending times are known before any data is. If not, agents are asked each
            round whether they want to send, and what they answer may tell of their data.
        needs_all_connected: Whether it makes sense only where every agent can reach every other.
    """

    @property
    def fixed_in_advance(self) -> bool:
        """Whether sending times are known before any data is."""

    @property
    def needs_all_connected(self) -> bool:
        """Whether every agent must be able to reach every other."""

    def senders(self, t: int, asked: Array) -> Array:
        """Says who sends in round ``t``, counted from 1.

        Args:
            t: The round.
            asked: Who asks to send, bool ``(replicas, agents)``; all of them where agents are not asked.

        Returns:
            bool ``(replicas, agents)``.
        """

    def count(self, horizon: int) -> int:
        """Counts the rounds among 1 to ``horizon`` in which an agent sends, at most: what a mechanism must plan for.

        Exact where rounds are fixed in advance.
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
"""Every schedule by the name that its specification has."""


def make_schedule(spec: Schedule | str | Mapping[str, Any]) -> Schedule:
    """Makes a schedule from its specification; a schedule passes through.

    Args:
        spec: A schedule, a name of :data:`SCHEDULES`, or a mapping of ``name`` and the schedule's arguments.

    Raises:
        TypeError: The specification is none of these, or has arguments the schedule does not know.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    return make("schedule", spec, SCHEDULES, Schedule)
