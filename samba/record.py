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


class ReceivedMessage(NamedTuple):
    """A message after its link has authenticated and decrypted the frame.

    Attributes:
        peer: Name of the role that sent it.
        payload: The kind of message (one byte) and its content.
    """

    peer: str
    payload: bytes


class DecryptedItems(NamedTuple):
    """The encrypted items of one message after decryption with a key that the role holds.

    Attributes:
        bound: Associated data of the items (:meth:`.items.ItemType.associated_data`); empty for a Paillier total.
        plain: The decrypted items, one after another.
    """

    bound: bytes
    plain: bytes


@dataclass
class Transcript:
    """Everything that one role has received and decrypted, in order.

    It is written by links and ciphers, where decryption takes place, and not by the code of the role.
    """

    received: list[ReceivedMessage] = field(default_factory=list)
    decrypted: list[DecryptedItems] = field(default_factory=list)


@dataclass
class Record:
    """A role's counts and transcript, shared by the role with its links and ciphers.

    Attributes:
        counts: Operations and traffic so far.
        transcript: Messages and decrypted items so far, or None to keep none.
    """

    counts: Counts = field(default_factory=Counts)
    transcript: Transcript | None = None

    def add_received(self, peer: str, payload: bytes) -> None:
        """Adds a received message to the transcript, if there is one."""
        if self.transcript is not None:
            self.transcript.received.append(ReceivedMessage(peer, payload))

    def add_decrypted(self, bound: bytes, plain: bytes) -> None:
        """Adds decrypted items to the transcript, if there is one."""
        if self.transcript is not None:
            self.transcript.decrypted.append(DecryptedItems(bound, plain))
