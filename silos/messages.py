"""Messages between silos: named arrays with a header, in an encoding that describes itself and runs no code.

A packet is the bytes :data:`MAGIC`, whose last one is the version; the length of the header, 4 bytes; the header, a
JSON object; and the numbers of all arrays, in the header's order. Numbers are little-endian. The header's ``arrays``
lists each array's name, dtype and shape. Whoever unpacks a packet says how long it may be. Sizes that the header
declares are compared with the packet's own before an array is made. Stores keep their state in the same form.

Messages are not authenticated: who sent one is what it says. A carrier has to vouch for that (TLS and keys of Flower's
SuperNodes, for example).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import LARGEST
from fedbandit_envs.wrappers.transport.schedule import Schedule

MAGIC = b"fbsilo\x00\x01"
"""The first bytes of a packet; the last one is the version of the encoding."""

MOST_HEADER = 1 << 16
"""Largest length of a message's header, bytes."""

_DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")


class MessageError(ValueError):
    """Raised when a message is refused; nothing has changed then. The error says what is wrong."""


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Returns a packet with a header, which must be JSON data without ``arrays``, and arrays by name.

    Raises:
        TypeError: An array's dtype is neither bool nor that of integers or of floating-point numbers.
    """
    kept = {name: np.asarray(array) for name, array in arrays.items()}
    kept = {name: array.astype(array.dtype.newbyteorder("<"), "C") for name, array in kept.items()}
    if other := {a.dtype.str for a in kept.values()} - {*_DTYPES}:
        raise TypeError(f"arrays have the dtypes {other}; some of {_DTYPES} are required")
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in kept.items()]
    written = json.dumps({**header, "arrays": listed}, separators=(",", ":")).encode()
    return b"".join(
        [MAGIC, len(written).to_bytes(4, "little"), written, *(a.tobytes() for a in kept.values())]
    )


def unpack(packet: bytes, most: int, most_header: int = MOST_HEADER) -> tuple[dict[str, Any], Arrays]:
    """Returns the header and the arrays of a packet.

    Args:
        packet: The packet.
        most: Largest length that is accepted, bytes.
        most_header: Largest length of the header, bytes.

    Raises:
        MessageError: This is no packet, one of another version, or malformed.
    """
    if not isinstance(packet, bytes):
        raise MessageError(f"a message is a {type(packet).__name__}; bytes are required")
    start = len(MAGIC) + 4
    if len(packet) > most:
        raise MessageError(f"a message has {len(packet)} bytes; at most {most} are required")
    if len(packet) < start or packet[: len(MAGIC) - 1] != MAGIC[:-1]:
        raise MessageError(f"a message begins with {packet[:8]!r}; {MAGIC!r} is required")
    if packet[len(MAGIC) - 1] != MAGIC[-1]:
        raise MessageError(f"a message has version {packet[len(MAGIC) - 1]}; {MAGIC[-1]} is required")
    size = int.from_bytes(packet[len(MAGIC) : start], "little")
    if size > min(most_header, len(packet) - start):
        raise MessageError(
            f"a header has {size} bytes; at most {most_header}, within the message, are required"
        )
    try:
        header = json.loads(packet[start : start + size])
        layout = [(str(name), str(dtype), list(shape)) for name, dtype, shape in header.pop("arrays")]
    # An int of thousands of digits is a ValueError, and a list nested as deeply a RecursionError.
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MessageError(f"a header cannot be read ({type(error).__name__}: {error})") from None
    sizes = []
    for name, dtype, shape in layout:
        if (
            dtype not in _DTYPES
            or not all(type(n) is int and 0 <= n <= most for n in shape)
            or len(shape) > 8
        ):
            raise MessageError(
                f"array {name!r} has dtype {dtype} and shape {shape}; one of {_DTYPES} is required"
            )
        sizes.append(prod(shape) * np.dtype(dtype).itemsize)
    if sum(sizes) != len(packet) - start - size or len({name for name, *_ in layout}) < len(layout):
        raise MessageError(
            f"arrays have {sum(sizes)} bytes and the names {[name for name, *_ in layout]}; different names, and the "
            f"{len(packet) - start - size} bytes behind the header, are required"
        )
    arrays, place = {}, start + size
    for (name, dtype, shape), length in zip(layout, sizes, strict=True):
        numbers = np.frombuffer(packet, dtype, prod(shape), place)
        arrays[name] = numbers.reshape(shape).astype(numbers.dtype.newbyteorder("="))
        place += length
    return header, arrays


class Layout(NamedTuple):
    """What the messages of a plan look like, by which receivers check them.

    Attributes:
        plan: The plan's identity.
        agents: Number of silos.
        shapes: Shapes of the arrays by name.
        rounds: Number of rounds.
        schedule: The rounds that have a release.
    """

    plan: str
    agents: int
    shapes: Mapping[str, tuple[int, ...]]
    rounds: int
    schedule: Schedule


@dataclass(frozen=True, eq=False)
class Message:
    """One release of a silo: what its statistic has grown by, with noise, and the noise's variances.

    Attributes:
        plan: Identity of the plan (:attr:`.SiloPlan.identity`).
        sender: Number of the silo.
        number: How many releases the silo has made, this one included.
        round: After how many rounds of the silo it was made.
        arrays: The numbers by name, float64.

    Example:
        >>> from fedbandit_envs.wrappers.transport.schedule import make_schedule
        >>> message = Message("a plan", 0, 1, 2, {"pulls": np.array([3.5, 1.0])})
        >>> layout = Layout("a plan", 3, {"pulls": (2,)}, 8, make_schedule({"name": "fixed_gap", "gap": 4}))
        >>> try:
        ...     Message.decode(message.encode(), layout)
        ... except MessageError as error:
        ...     print(error)
        message 1 of silo 0 is of round 2; a round in which the plan has a release is required
    """

    plan: str
    sender: int
    number: int
    round: int
    arrays: Arrays

    def encode(self) -> bytes:
        """Returns the message as bytes."""
        header = {"plan": self.plan, "sender": self.sender, "number": self.number, "round": self.round}
        return pack(header, self.arrays)

    @classmethod
    def decode(cls, packet: bytes, layout: Layout) -> "Message":
        """Returns the message that bytes encode, after checking it.

        Args:
            packet: The bytes.
            layout: What the plan's messages look like.

        Raises:
            MessageError: The message is malformed or too long, of another plan, of a silo or a round that the plan does
                not have, or not finite; or its arrays are others.
        """
        length = 8 * sum(prod(shape) for shape in layout.shapes.values())
        header, arrays = unpack(packet, len(MAGIC) + 4 + MOST_HEADER + length)
        if header.get("plan") != layout.plan:
            raise MessageError(
                f"a message is of plan {str(header.get('plan'))[:80]!r}; {layout.plan!r} is required"
            )
        numbers: list[Any] = [header.get(name) for name in ("sender", "number", "round")]
        if set(header) != {"plan", "sender", "number", "round"} or not all(type(n) is int for n in numbers):
            raise MessageError(
                f"a header has {str(header)[:200]}; plan, sender, number and round are required"
            )
        sender, number, round_ = numbers
        what = f"message {str(number)[:20]} of silo {str(sender)[:20]}"
        if not 0 <= sender < layout.agents:
            raise MessageError(
                f"{what} is of none of the plan's {layout.agents} silos, 0 to {layout.agents - 1}"
            )
        if not 1 <= round_ <= layout.rounds or not layout.schedule.sends(round_):
            raise MessageError(
                f"{what} is of round {str(round_)[:20]}; a round in which the plan has a release is required"
            )
        if not 1 <= number <= (most := layout.schedule.count(round_)):
            raise MessageError(f"{what} is of round {round_}; a number in [1, {most}] is required")
        found = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
        if found != {name: ("<f8", tuple(shape)) for name, shape in layout.shapes.items()}:
            raise MessageError(
                f"{what} has the arrays {str(found)[:300]}; float64 {dict(layout.shapes)} is required"
            )
        for name, array in arrays.items():
            if not (np.abs(array) <= LARGEST).all():
                raise MessageError(
                    f"{what} has numbers in {name!r} that are not finite, or above {LARGEST:g}; others are required"
                )
        return cls(layout.plan, sender, number, round_, arrays)
