"""Messages between roles, the items in them, what each role could read of those that it received, and errors.

The steps in the descriptions of kinds are those of SAMBA, Figure 5.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from enum import IntEnum
from struct import pack
from typing import Any, NamedTuple

import numpy as np


class SecureError(Exception):
    """An error that ends a run of the secure protocol without a result; the message says what has happened.

    Attributes:
        culprit: Name of the role that caused it; empty if that is not known.
    """

    def __init__(self, message: str, culprit: str = "") -> None:
        """Stores the message for the user and the name of the role that caused the error."""
        super().__init__(message)
        self.culprit = culprit


class MissingExtraError(ImportError):
    """The error that libraries of an extra of this package are not installed; the message says how to install them."""


class Kind(IntEnum):
    """The kind of a message, sent as the first byte of the message."""

    HELLO = 0
    """No content; the first frame of a connection to Controller, which proves who the sender is."""
    PLAN = 1
    """Steps 0 and 1: the plan, with the customer's modulus for the roles that need it."""
    SCORES = 2
    """Steps 2 and 3: encrypted scores, one for each owner."""
    COMMON_SCORE = 3
    """Step 3 in a round of exploration: one score that Controller gives to all owners, as long as a SCORES message."""
    MARKS = 4
    """Steps 4 and 5: encrypted marks, one for each owner, which tell whether the owner was picked."""
    SUMS = 5
    """Step 6: sums of rewards under Paillier encryption, one for each owner."""
    TOTAL = 6
    """Step 7: the product of the encrypted sums, which is an encryption of the total."""
    STOP = 7
    """The run has ended without a result: the role that caused it and the reason, as JSON."""


Message = tuple[str, Kind, bytes]
"""A message before its link encrypts it: the receiver's name, the kind and the content."""


class Frame(NamedTuple):
    """An encrypted message on its way from sender to receiver, as an observer of the network sees it."""

    sender: str
    receiver: str
    data: bytes


NONCE_BYTES = 12
TAG_BYTES = 16


class ItemType(NamedTuple):
    """A type of encrypted item: :data:`SCORE` or :data:`MARK`.

    Attributes:
        name: Name of the type in error messages.
        size: Number of bytes of an item before encryption.
        direction: The number for the pair of sender and receiver in the associated data.
    """

    name: str
    size: int
    direction: int

    @property
    def layout(self) -> np.dtype:
        """The NumPy type of an encrypted item: its nonce, then the AES-256-GCM ciphertext with the tag."""
        return np.dtype([("nonce", f"V{NONCE_BYTES}"), ("sealed", f"V{self.size + TAG_BYTES}")])

    @property
    def encrypted_size(self) -> int:
        """Number of bytes of an item after encryption, with nonce and tag."""
        return self.layout.itemsize

    def associated_data(self, round_: int, iteration: int) -> bytes:
        """Returns the associated data for AES-GCM, which all items of this type in one iteration of a round share."""
        return pack(">BQI", self.direction, round_, iteration)


SCORE = ItemType("score", 8, 1)
"""The type of scores: a score times the mask of the round, as little-endian float64, from an owner to Comp."""
MARK = ItemType("mark", 1, 2)
"""The type of marks: one byte from Comp to an owner, which is 1 if the owner is picked, else 0."""


@dataclass
class Counts:
    """Numbers of cryptographic operations, frames and bytes of one role, or of several roles together.

    Attributes:
        aes_encryptions: Scores and marks encrypted under the key that owners share with Comp.
        aes_decryptions: Scores and marks decrypted.
        paillier_encryptions: Sums of rewards encrypted under the customer's public key.
        paillier_multiplications: Multiplications of encrypted sums, each of which adds two sums.
        paillier_decryptions: Decryptions of the total reward by the customer.
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


@dataclass
class Record:
    """A role's counts and, if it is kept, the transcript of everything that the role has received and decrypted.

    The role's links and ciphers hold the same object and write to it whenever they send, receive or decrypt.

    Attributes:
        keeps_transcript: Whether messages and decrypted items are kept.
        counts: Operations and traffic so far.
        received: Messages in order of arrival: name of the sender, and the payload (a byte for the kind of message,
            then its content) after the link has authenticated and decrypted the frame.
        decrypted: Items that the role has decrypted with its own keys, in order: for each message their associated data
            (:meth:`ItemType.associated_data`; empty for a Paillier total), and the items one after another.
    """

    keeps_transcript: bool = False
    counts: Counts = field(default_factory=Counts)
    received: list[tuple[str, bytes]] = field(default_factory=list)
    decrypted: list[tuple[bytes, bytes]] = field(default_factory=list)

    def add_received(self, peer: str, payload: bytes) -> None:
        """Adds a received message to the transcript, if one is kept."""
        if self.keeps_transcript:
            self.received.append((peer, payload))

    def add_decrypted(self, bound: bytes, plain: bytes) -> None:
        """Adds decrypted items to the transcript, if one is kept."""
        if self.keeps_transcript:
            self.decrypted.append((bound, plain))


_SHOWN = 12  # most scores, or bytes of a ciphertext that the role cannot decrypt, shown of one message
# The kinds of messages that a role can decrypt, since they are encrypted with its key.
_OPENED = {"comp": (Kind.SCORES,), "customer": (Kind.TOTAL,), "owner": (Kind.MARKS,)}

KNOWS: Mapping[str, str] = {
    "customer": "The cumulative reward, and nothing else: no arm's, no round's.",
    "comp": "Scores under a mask and in an order that are new in every round: it can compare them, and knows neither "
    "whose they are nor how large.",
    "controller": "Who has sent something and when, and ciphertexts of constant length, none of which it can open.",
    "owner": "Its own pulls and rewards, and in each round whether it was picked: nothing of other owners.",
}
"""What each kind of role learns in a run (SAMBA, Figure 7); owners are named ``owner-0``, ``owner-1`` ..."""


def sightings(role: str, record: Record) -> list[dict[str, Any]]:
    """Returns the messages that a role received, in order, each as a row of the table that shows them.

    A row has the place of the message (``number``, from 1 on), ``sender``, the ``kind`` of message in words, its
    ``size`` in bytes without the encryption of the link, what the receiver could ``read`` in it, in words, and whether
    the receiver decrypted it (``opened``). Other messages are plain to both ends of the link, or ciphertexts that the
    receiver cannot decrypt.

    Args:
        role: The role's name.
        record: Its record, with messages received (by its links) and items decrypted (by its ciphers).
    """
    opened = iter(record.decrypted)
    opens = _OPENED.get(role.partition("-")[0], ())
    rows = []
    for number, (peer, payload) in enumerate(record.received, 1):
        kind, content = Kind(payload[0]), payload[1:]
        # Items were decrypted in the order in which their messages came, so the next one belongs to this message.
        plain = next(opened)[1] if kind in opens else None
        rows.append({
            "number": number, "sender": peer, "kind": kind.name.lower().replace("_", " "), "size": len(payload),
            "read": _read(kind, content, plain), "opened": plain is not None,
        })  # fmt: skip
    return rows


def _read(kind: Kind, content: bytes, plain: bytes | None) -> str:
    if kind is Kind.PLAN:
        plan = json.loads(content)
        return f"{plan['algorithm']['name']}, {plan['arms']} arms, {plan['budget']} rounds, picks by {plan['choice']}"
    if kind is Kind.COMMON_SCORE:
        score = np.frombuffer(content[: SCORE.size], "<f8")[0]
        return f"one score of Controller's own for all, {score:.4g}: the round explores"
    if plain is None:
        return f"cannot open it: {content[:_SHOWN].hex(' ')} \u2026"
    if kind is Kind.SCORES:
        scores = np.frombuffer(plain, "<f8")
        shown = [f"{score:.4g}" for score in scores[:_SHOWN]] + ["\u2026"] * (len(scores) > _SHOWN)
        return f"masked, in an order of this round: {', '.join(shown)}"
    if kind is Kind.MARKS:
        return "picked" if plain[0] else "not picked"
    return f"the cumulative reward, {int.from_bytes(plain, 'big'):,}"
