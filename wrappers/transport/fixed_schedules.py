"""Schedules whose rounds are fixed in advance, so that sending times reveal nothing about data.

Each is defined by its counting function: the number of rounds with messages among the first t. A privacy mechanism
needs the same function to divide its budget among releases.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice, require_integer


class FixedSchedule(ABC):
    """The base of schedules by which all agents send in rounds known in advance; see :class:`.schedule.Schedule`."""

    fixed_in_advance: ClassVar[bool] = True
    needs_all_connected: ClassVar[bool] = False

    @abstractmethod
    def count(self, horizon: int) -> int:
        """Returns the number of rounds in which messages are sent, among rounds 1 to ``horizon`` (>= 0)."""

    def sends(self, t: int) -> bool:
        """Returns whether messages are sent in round ``t``, counted from 1."""
        return self.count(t) > self.count(t - 1)

    def senders(self, t: int, asked: Array) -> Array:
        """Returns which agents send in round ``t``, all or none, bool in the shape of ``asked``."""
        return np.full(asked.shape, self.sends(t))


@dataclass(frozen=True)
class Silent(FixedSchedule):
    """The schedule by which no agent ever sends."""

    def count(self, horizon: int) -> int:
        """Returns 0."""
        return 0


@dataclass(frozen=True)
class EveryRound(FixedSchedule):
    """The schedule by which all agents send in every round."""

    def count(self, horizon: int) -> int:
        """Returns the number of rounds."""
        return int(horizon)


@dataclass(frozen=True)
class FixedGap(FixedSchedule):
    """The schedule by which all agents send in rounds gap, 2 gap, 3 gap, ...

    Attributes:
        gap: Number of rounds from one message to the next, >= 1.

    Example:
        >>> [t for t in range(1, 11) if FixedGap(gap=4).sends(t)]
        [4, 8]
    """

    gap: int

    def __post_init__(self) -> None:
        """Refuses bad values.

        Raises:
            TypeError: ``gap`` is no integer.
            ValueError: It is < 1.
        """
        require_integer("gap", self.gap, 1)

    def count(self, horizon: int) -> int:
        """Returns the number of multiples of the gap."""
        return int(horizon) // int(self.gap)


@dataclass(frozen=True)
class Doubling(FixedSchedule):
    """The schedule with gaps that double, between a first and a last round (P-FCB; Solanki et al. 2022, Algorithm 1).

    Attributes:
        start: First round in which messages may be sent.
        stop: Last one; None for no last round.
        mode: ``"powers_of_two"`` sends when t is a power of two: with the defaults at 256, 512, ..., 32768, 8
            times. ``"printed"`` follows the listing: tau starts at 1 and doubles only with a message sent in
            some round t >= tau, so that it has to catch up at the start: 16 times, 8 of them in rounds 200 to 207.

    Example:
        >>> [t for t in range(1, 1001) if Doubling().sends(t)]
        [256, 512]
    """

    start: int = 200
    stop: int | None = 40_000
    mode: Literal["powers_of_two", "printed"] = "powers_of_two"

    def __post_init__(self) -> None:
        """Refuses bad values.

        Raises:
            TypeError: A round is no integer.
            ValueError: A value is out of its range.
        """
        require_integer("start", self.start, 1)
        if self.stop is not None:
            require_integer("stop", self.stop, int(self.start))
        require_choice("mode", self.mode, ("powers_of_two", "printed"))

    def count(self, horizon: int) -> int:
        """Returns the number of powers of two in the range, or of the listing's rounds."""
        start = int(self.start)
        last = int(horizon) if self.stop is None else min(int(horizon), int(self.stop))
        if last < start:
            return 0
        if self.mode == "powers_of_two":
            return last.bit_length() - (start - 1).bit_length()
        # The k-th message is sent at max(start + k - 1, 2^(k - 1)).
        return min(last - start + 1, last.bit_length())


@dataclass(frozen=True)
class GrowingThenFixed(FixedSchedule):
    """The schedule with gaps that double up to a limit and stay there (Fed-FairX-LinUCB, Algorithm 6.1).

    Messages are sent in rounds 1, 2, 4, ... up to the first power of two P >= limit, then in P + limit,
    P + 2 limit, ...

    Attributes:
        limit: G, the largest gap, >= 1.

    Example:
        >>> [t for t in range(1, 21) if GrowingThenFixed(limit=4).sends(t)]
        [1, 2, 4, 8, 12, 16, 20]
    """

    limit: int

    def __post_init__(self) -> None:
        """Refuses bad values.

        Raises:
            TypeError: ``limit`` is no integer.
            ValueError: It is < 1.
        """
        require_integer("limit", self.limit, 1)

    def count(self, horizon: int) -> int:
        """Returns the number of powers of two until the limit is reached, and of multiples of the limit after it."""
        limit = int(self.limit)
        last_doubling = 1 << (limit - 1).bit_length()
        doublings = min(int(horizon), last_doubling).bit_length()
        return doublings + max(0, int(horizon) - last_doubling) // limit


@dataclass(frozen=True, init=False)
class Geometric(FixedSchedule):
    """The schedule of a given number of rounds in geometric progression (for FedUCB's communication budgets).

    With ``count`` = n rounds in a horizon T, round number k is T^(k/(n + 1)), rounded: gaps grow by the factor
    T^(1/(n + 1)), and the last gap ends at the horizon. Where rounded numbers coincide, at the beginning, the later
    round is the next one.

    Attributes:
        rounds: The rounds, increasing, from 1 to the horizon.

    Example:
        >>> Geometric(count=3, horizon=10_000).rounds
        (10, 100, 1000)
    """

    rounds: tuple[int, ...]

    def __init__(self, count: int, horizon: int) -> None:
        """Sets the rounds.

        Args:
            count: Number of rounds with messages, 1 to ``horizon``.
            horizon: T, the number of rounds of an episode, >= 1.

        Raises:
            TypeError: An argument is no integer.
            ValueError: An argument is out of its range.
        """
        require_integer("horizon", horizon, 1)
        require_integer("count", count, 1)
        if count > horizon:
            raise ValueError(f"count is {count!r}; an integer of at most horizon = {horizon} is required")
        rounds: list[int] = []
        for k in range(1, int(count) + 1):
            rounds.append(max(round(int(horizon) ** (k / (int(count) + 1))), rounds[-1] + 1 if rounds else 1))
        object.__setattr__(self, "rounds", tuple(rounds))

    def count(self, horizon: int) -> int:
        """Returns the number of rounds up to ``horizon``."""
        return bisect_right(self.rounds, horizon)
