"""The record of a role in a run: counts of operations and traffic, and an optional transcript."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import NamedTuple


@dataclass
class Counts:
    """Operations and traffic of one role, or of several roles together.

    Attributes:
        aes_encryptions: Scores and marks encrypted under the key that owners share with Comp.
        aes_decryptions: Scores and marks decrypted.
        paillier_encryptions: Sums of rewards encrypted under the customer's public key.
        paillier_multiplications: Multiplications of encrypted sums, each of which adds two sums.
        paillier_decryptions: Decryptions of the total.
        frames: Frames sent.
        bytes: Bytes of the frames sent.

    Example:
        >>> Counts.total([Counts(frames=2), Counts(frames=3)]).frames
        5
    """

    aes_encryptions: int = 0
    aes_decryptions: int = 0
    paillier_encryptions: int = 0
    paillier_multiplications: int = 0
    paillier_decryptions: int = 0
    frames: int = 0
    bytes: int = 0

    @classmethod
    def total(cls, parts: Iterable["Counts"]) -> "Counts":
        """Returns the sum of the counts of several roles."""
        return cls(*map(sum, zip(*map(astuple, parts), strict=True)))


class DecryptedItems(NamedTuple):
    """The encrypted items of one message after decryption with a key that the role holds.

    Attributes:
        bound: Associated data of the items (:meth:`.items.ItemType.associated_data`); empty for a Paillier total.
        plain: The decrypted items, one after another.
    """

    bound: bytes
    plain: bytes


@dataclass
class Record:
    """A role's counts and, if it is kept, the transcript of everything that the role has received and decrypted.

    It is shared by the role with its links and ciphers, which write it where decryption takes place.

    Attributes:
        keeps_transcript: Whether messages and decrypted items are kept.
        counts: Operations and traffic so far.
        received: Messages in order of arrival: name of the sender, and the payload (a byte for the kind of message,
            then its content) after the link has authenticated and decrypted the frame.
        decrypted: Items that the role has decrypted with its own keys, in order.
    """

    keeps_transcript: bool = False
    counts: Counts = field(default_factory=Counts)
    received: list[tuple[str, bytes]] = field(default_factory=list)
    decrypted: list[DecryptedItems] = field(default_factory=list)

    def add_received(self, peer: str, payload: bytes) -> None:
        """Adds a received message to the transcript, if one is kept."""
        if self.keeps_transcript:
            self.received.append((peer, payload))

    def add_decrypted(self, bound: bytes, plain: bytes) -> None:
        """Adds decrypted items to the transcript, if one is kept."""
        if self.keeps_transcript:
            self.decrypted.append(DecryptedItems(bound, plain))
