"""What a role gets to see, written down where it sees it: as links and ciphers open, not as roles would have it."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Received(NamedTuple):
    """A message, as its link has opened it."""

    peer: str
    payload: bytes


class Opened(NamedTuple):
    """Encrypted items of one message, opened with a key that the role holds.

    Attributes:
        bound: What they were bound to (:func:`.items.bound_to`); empty for Paillier's.
        plain: Their content, one after the other.
    """

    bound: bytes
    plain: bytes


@dataclass
class Transcript:
    """All that a role has received, and all that it could decrypt of it."""

    received: list[Received] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
