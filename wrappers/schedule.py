"""When agents send: schedules of communication rounds, fixed in advance or left to the agents.

A schedule answers for round t, counted from 1, after that round's outcomes are known. Wherever one is asked
for, its JSON-able specification will do: a name, ``"every_round"``, or a mapping of the name and the
arguments, ``{"name": "fixed_gap", "gap": 10}``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np


class Schedule(Protocol):
    """Says in which rounds messages are sent.

    Attributes:
        fixed_in_advance: Whether sending times are known before any data is. If not, agents are asked each
            round whether they want to send, and what they answer may tell of their data.
    """

    @property
    def fixed_in_advance(self) -> bool:
        """Whether sending times are known before any data is."""

    def sends(self, t: int) -> bool:
        """Says whether messages are sent (if agents are asked: may be) in round ``t``, counted from 1."""


@dataclass(frozen=True)
class Silent:
    """Nobody ever sends."""

    fixed_in_advance: ClassVar[bool] = True

    def sends(self, t: int) -> bool:
        """Says no."""
        return False


@dataclass(frozen=True)
class EveryRound:
    """Everybody sends in every round."""

    fixed_in_advance: ClassVar[bool] = True

    def sends(self, t: int) -> bool:
        """Says yes."""
        return True


@dataclass(frozen=True)
class Doubling:
    """Gaps that double, between a first and a last round (P-FCB; Solanki et al. 2022, Algorithm 1).

    Attributes:
        start: First round in which messages may be sent.
        stop: Last one.
        mode: ``"powers_of_two"`` sends when t is a power of two: with the defaults at 256, 512, ..., 32768, 8
            times. ``"printed"`` follows the listing: tau starts at 1 and doubles only with a message sent in
            some round t >= tau, so that it has to catch up first: 16 times, with a burst at 200-207.
    """

    start: int = 200
    stop: int = 40_000
    mode: Literal["powers_of_two", "printed"] = "powers_of_two"
    _rounds: frozenset[int] = field(init=False, repr=False, compare=False)

    fixed_in_advance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuses bad values.

        Raises:
            TypeError: A round is no integer.
            ValueError: A value is out of its range.
        """
        _check_integer("start", self.start, 1)
        _check_integer("stop", self.stop, self.start)
        if self.mode not in ("powers_of_two", "printed"):
            raise ValueError(f"mode is {self.mode!r}; 'powers_of_two' or 'printed' is required")
        rounds = set()
        t = tau = 1
        while t <= self.stop:
            if t >= self.start:
                rounds.add(t)
            if t >= self.start or self.mode == "powers_of_two":
                tau *= 2
                t = max(t + 1, tau)
            else:
                t = self.start
        object.__setattr__(self, "_rounds", frozenset(rounds))

    def sends(self, t: int) -> bool:
        """Says whether t is one of the rounds."""
        return t in self._rounds


@dataclass(frozen=True)
class FixedGap:
    """Messages in rounds gap, 2 gap, 3 gap, ...

    Attributes:
        gap: Rounds from one message to the next, >= 1.
    """

    gap: int

    fixed_in_advance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuses bad values.

        Raises:
            TypeError: ``gap`` is no integer.
            ValueError: It is < 1.
        """
        _check_integer("gap", self.gap, 1)

    def sends(self, t: int) -> bool:
        """Says whether t is a multiple of the gap."""
        return t % self.gap == 0


@dataclass(frozen=True)
class GrowingThenFixed:
    """Gaps that double up to a limit and stay there (Fed-FairX-LinUCB, Algorithm 6.1).

    Messages are sent in rounds 1, 2, 4, ... up to the first power of two P >= limit, then in P + limit,
    P + 2 limit, ...

    Attributes:
        limit: G, the largest gap, >= 1.
    """

    limit: int

    fixed_in_advance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuses bad values.

        Raises:
            TypeError: ``limit`` is no integer.
            ValueError: It is < 1.
        """
        _check_integer("limit", self.limit, 1)

    def sends(self, t: int) -> bool:
        """Says whether t is a power of two before the limit is reached, or a whole number of limits after."""
        last_doubling = 1 << (self.limit - 1).bit_length()
        if t <= last_doubling:
            return t & (t - 1) == 0
        return (t - last_doubling) % self.limit == 0


@dataclass(frozen=True)
class OnRequest:
    """Agents decide in each round, with the ``send`` entry of their action.

    The decision comes with the action of the round, so it is taken before that round's outcomes are known.
    The message includes them.
    """

    fixed_in_advance: ClassVar[bool] = False

    def sends(self, t: int) -> bool:
        """Says that agents may."""
        return True


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "silent": Silent,
    "every_round": EveryRound,
    "doubling": Doubling,
    "fixed_gap": FixedGap,
    "growing_then_fixed": GrowingThenFixed,
    "on_request": OnRequest,
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
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping):
        if isinstance(spec, type) or not (hasattr(spec, "sends") and hasattr(spec, "fixed_in_advance")):
            raise TypeError(f"schedule is {spec!r}; a schedule, a name or a mapping with a name is required")
        return spec
    arguments = dict(spec)
    name = arguments.pop("name", None)
    if not isinstance(name, str) or name not in SCHEDULES:
        raise ValueError(f"schedule name is {name!r}; one of {sorted(SCHEDULES)} is required")
    try:
        return SCHEDULES[name](**arguments)
    except TypeError as error:
        raise TypeError(f"schedule {name!r} with arguments {arguments}: {error}") from None


def _check_integer(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {value!r}; an integer >= {least} is required")
    if value < least:
        raise ValueError(f"{name} is {value!r}; an integer >= {least} is required")
