"""Messages between silos: one release, or the sum of several, as JSON that describes itself.

A message is an object with ``format``, whose last word is the version; ``plan``, the plan's identity; ``parts``, which
says whose releases are in it; and ``arrays``, which has dtype, shape and values of each array by name. Every number is
written with all of its digits. Sizes are bounded, and shapes must be those of the plan.

Messages are not authenticated: who sent one is what it says. A carrier has to vouch for that (TLS and keys of Flower's
SuperNodes, for example).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.basics.checks import LARGEST
from fedbandit_envs.wrappers.transport.schedule import Schedule

FORMAT = "fedbandit silo message 1"
"""What a message begins with; its last word is the version of the encoding."""


class MessageError(ValueError):
    """Raised when a message is refused; nothing has changed then. The error says what is wrong."""


class Layout(NamedTuple):
    """What the messages of a plan look like, by which receivers check them.

    Attributes:
        plan: The plan's identity.
        agents: Number of silos.
        shapes: Shapes of the arrays by name.
        rounds: Number of rounds.
        schedule: The rounds that have a release.
        sums: Whether silos receive sums of releases, as from a server, or single releases.
    """

    plan: str
    agents: int
    shapes: Mapping[str, tuple[int, ...]]
    rounds: int
    schedule: Schedule
    sums: bool = False


@dataclass(frozen=True, eq=False)
class Message:
    """One release of a silo: what its statistic has grown by, with noise, and the noise's variances; or a sum of such.

    Attributes:
        plan: Identity of the plan (:attr:`.SiloPlan.identity`).
        parts: The releases that are in it, in ascending order: each the number of a silo, and after how many rounds of
            the silo it was made.
        arrays: The numbers by name, float64.

    Example:
        >>> from fedbandit_envs.wrappers.transport.schedule import make_schedule
        >>> message = Message("a plan", ((0, 2),), {"pulls": np.array([3.5, 1.0])})
        >>> layout = Layout("a plan", 3, {"pulls": (2,)}, 8, make_schedule({"name": "fixed_gap", "gap": 4}))
        >>> try:
        ...     Message.decode(message.encode(), layout)
        ... except MessageError as error:
        ...     print(error)
        a message is of the releases [(0, 2)]; one of silos 0 to 2, after a round with a release, is required
    """

    plan: str
    parts: tuple[tuple[int, int], ...]
    arrays: Arrays

    def encode(self) -> bytes:
        """Returns the message as bytes."""
        arrays = {
            name: {"dtype": "float64", "shape": array.shape, "values": array.ravel().tolist()}
            for name, array in self.arrays.items()
        }
        told = {"format": FORMAT, "plan": self.plan, "parts": self.parts, "arrays": arrays}
        return json.dumps(told, allow_nan=False).encode()

    @classmethod
    def decode(cls, packet: bytes, layout: Layout) -> "Message":
        """Returns the message that bytes encode, after checking it.

        Args:
            packet: The bytes.
            layout: What the plan's messages look like.

        Raises:
            MessageError: The message is malformed or too long, of another plan, of a silo or a round that the plan does
                not have, a sum where single releases are required, or not finite; or its arrays are others.
        """

        def require(fine: bool, found: str, required: str) -> None:
            if not fine:
                raise MessageError(f"a message {found[:300]}; {required} is required")

        releases = layout.agents * layout.schedule.count(layout.rounds)
        # No number has more than 25 characters, and no release that is named more than 48.
        longest = 4096 + 32 * sum(map(prod, layout.shapes.values())) + 48 * releases
        found = f"is a {type(packet).__name__} of length {len(packet)}"
        require(isinstance(packet, bytes) and len(packet) <= longest, found, f"at most {longest} bytes")
        try:
            told = json.loads(packet)
            names = [told["format"], told["plan"]]
            parts = [(sender, round_) for sender, round_ in told["parts"]]
            shapes = {name: (one["dtype"], tuple(one["shape"])) for name, one in told["arrays"].items()}
            values = {name: np.array(one["values"], np.float64) for name, one in told["arrays"].items()}
            arrays = {name: array.reshape(shapes[name][1]) for name, array in values.items()}
        # An int of thousands of digits is a ValueError, and a list nested as deeply a RecursionError.
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise MessageError(f"a message cannot be read: {type(error).__name__}, {error}") from None
        require(names == [FORMAT, layout.plan], f"is of format and plan {names}", f"{[FORMAT, layout.plan]}")
        most = releases if layout.sums else 1
        require(1 <= len(parts) <= most, f"is of {len(parts)} releases", f"a number in [1, {most}]")
        listed = all(
            type(sender) is type(round_) is int
            and 0 <= sender < layout.agents
            and 1 <= round_ <= layout.rounds
            and layout.schedule.sends(round_)
            for sender, round_ in parts
        )
        silos = f"one of silos 0 to {layout.agents - 1}, after a round with a release,"
        require(listed, f"is of the releases {parts}", silos)
        require(parts == sorted({*parts}), f"is of the releases {parts}", "an ascending order")
        expected = {name: ("float64", tuple(shape)) for name, shape in layout.shapes.items()}
        require(shapes == expected, f"has the arrays {shapes}", f"{expected}")
        wrong = [name for name, array in arrays.items() if not (np.abs(array) <= LARGEST).all()]
        found = f"has numbers in {wrong} that are not finite, or above {LARGEST:g}"
        require(not wrong, found, "a finite number")
        return cls(layout.plan, tuple(parts), arrays)


def added(messages: Sequence[Message]) -> Message:
    """Returns the sum of messages of one plan, one or more, in the order of their releases."""
    ordered = sorted(messages, key=lambda message: message.parts)
    arrays = {name: np.stack([one.arrays[name] for one in ordered]).sum(axis=0) for name in ordered[0].arrays}
    return Message(ordered[0].plan, tuple(part for one in ordered for part in one.parts), arrays)
