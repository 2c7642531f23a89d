"""Messages between roles, their encryption by the ciphers of well-known libraries, and what each role could read.

A frame on a link is a sequence number (8 bytes) and the message under AES-256-GCM, with that number as the nonce; so no
nonce is used twice with the same key. An observer sees nothing but the lengths of messages. A frame that was modified,
repeated, swapped with another, taken from another link, or sent after a frame that got lost is refused.

An item is a score or a mark. An encrypted item is a random nonce (12 bytes), the item under AES-256-GCM, and a tag (16
bytes). Its associated data are direction, round and iteration, so that it cannot be decrypted as an item of another
direction, round or iteration. They do not contain the owner: Comp must not learn whose score it decrypts.

The steps in the descriptions of kinds are those of SAMBA, Figure 5.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import repeat
from struct import pack
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.tables import optional_library


class SecureError(Exception):
    """An error that ends a run of the secure protocol without a result; the message says what has happened.

    Attributes:
        culprit: Name of the role that caused it; empty if that is not known.
    """

    def __init__(self, message: str, culprit: str = "") -> None:
        """Stores the message for the user and the name of the role that caused the error."""
        super().__init__(message)
        self.culprit = culprit


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
    """

    aes_encryptions: int = 0
    aes_decryptions: int = 0
    paillier_encryptions: int = 0
    paillier_multiplications: int = 0
    paillier_decryptions: int = 0
    frames: int = 0
    bytes: int = 0


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


def require_extra() -> None:
    """Imports all libraries of the ``[secure]`` extra, so that a run without them fails before it starts.

    Everything else that needs one of them imports it when it is called.

    Raises:
        ImportError: A library is missing; the message says how to install the extra.
    """
    for name in ("cryptography", "gmpy2", "phe"):
        optional_library(name, "secure")


_NUMBER_BYTES = 8


class Link:
    """One role's end of a link to a peer: it encrypts the frames to the peer and decrypts those from the peer."""

    def __init__(self, peer: str, keys: Sequence[bytes], record: Record) -> None:
        """Sets up a link on which no frame has been sent yet.

        Args:
            peer: Name of the role at the other end.
            keys: The key of frames to the peer and the key of frames from the peer, both new, 32 bytes each.
            record: The record of the role at this end; it counts frames sent and keeps messages received.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.peer = peer
        self._sending, self._receiving = map(AESGCM, keys)
        self._sent = 0
        self._received = 0
        self._record = record

    def seal(self, payload: bytes) -> bytes:
        """Returns the next frame to the peer, an encrypted message with its sequence number."""
        number = self._sent.to_bytes(_NUMBER_BYTES, "big")
        frame = number + self._sending.encrypt(bytes(4) + number, payload, None)
        self._sent += 1
        self._record.counts.frames += 1
        self._record.counts.bytes += len(frame)
        return frame

    def open(self, frame: bytes) -> bytes:
        """Returns the decrypted message of the next frame from the peer, after checking that the frame is authentic.

        After a frame that is refused, the link expects the same frame again.

        Raises:
            SecureError: The frame is not the next one in order, or was modified.
        """
        from cryptography.exceptions import InvalidTag

        peer, expected = self.peer, self._received
        number = frame[:_NUMBER_BYTES]
        if number != expected.to_bytes(_NUMBER_BYTES, "big"):
            raise SecureError(f"frame {number.hex()!r} came from {peer}; frame {expected} is the next", peer)
        try:
            payload = self._receiving.decrypt(bytes(4) + number, frame[_NUMBER_BYTES:], None)
        except InvalidTag as error:
            raise SecureError(
                f"frame {expected} from {peer} has a wrong tag: it was modified, or sealed with another key",
                peer,
            ) from error
        self._received += 1
        if self._record.keeps_transcript:
            self._record.received.append((peer, payload))
        return payload


class ItemCipher:
    """A cipher for lists of scores or marks: AES-256-GCM with a random nonce for each item."""

    def __init__(self, key: bytes, record: Record) -> None:
        """Makes the cipher of one holder of a key.

        Args:
            key: 32 bytes, fresh in every run. A plan with more items than may be encrypted with it is refused.
            record: The record of the role that holds the cipher.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)
        self._record = record

    def encrypt(self, items: bytes, type_: ItemType, round_: int, iteration: int) -> bytes:
        """Returns the encrypted items, one after another.

        Args:
            items: The items, one after another.
            type_: Scores or marks.
            round_: The round t, counted from 1.
            iteration: The iteration within the round, counted from 0.
        """
        number = len(items) // type_.size
        bound = type_.associated_data(round_, iteration)
        plain = np.frombuffer(items, f"V{type_.size}").tolist()
        encrypted = np.empty(number, type_.layout)
        encrypted["nonce"] = nonces = np.frombuffer(os.urandom(number * NONCE_BYTES), f"V{NONCE_BYTES}")
        sealed = b"".join(map(self._cipher.encrypt, nonces.tolist(), plain, repeat(bound)))
        encrypted["sealed"] = np.frombuffer(sealed, encrypted.dtype["sealed"])
        self._record.counts.aes_encryptions += number
        return encrypted.tobytes()

    def decrypt(self, encrypted: bytes, number: int, type_: ItemType, round_: int, iteration: int) -> bytes:
        """Returns the decrypted items, one after another, after checking that all of them are authentic.

        Args:
            encrypted: The encrypted items, one after another.
            number: Number of items.
            type_: Scores or marks.
            round_: The round t, counted from 1.
            iteration: The iteration within the round, counted from 0.

        Raises:
            SecureError: ``encrypted`` has another length than ``number`` items have; or an item was modified, or
                encrypted with another key, type, round or iteration.
        """
        from cryptography.exceptions import InvalidTag

        required = number * type_.layout.itemsize
        if len(encrypted) != required:
            raise SecureError(f"encrypted items have {len(encrypted)} bytes; {required} are required")
        bound = type_.associated_data(round_, iteration)
        parts = np.frombuffer(encrypted, type_.layout)
        try:
            plain = b"".join(
                map(self._cipher.decrypt, parts["nonce"].tolist(), parts["sealed"].tolist(), repeat(bound))
            )
        except InvalidTag as error:
            raise SecureError(
                f"an encrypted {type_.name} does not decrypt as one of round {round_}, iteration {iteration}: it was "
                "modified, comes from another place or round, or was encrypted with another key"
            ) from error
        self._record.counts.aes_decryptions += number
        if self._record.keeps_transcript:
            self._record.decrypted.append((bound, plain))
        return plain


KEY_BITS = 2048


class Paillier:
    """The customer's Paillier key, with the private half in the customer's hands only.

    Attributes:
        modulus: n, the product of two primes: the public key.
    """

    def __init__(self, record: Record, modulus: int | None = None) -> None:
        """Makes the key.

        Args:
            record: The record of the role that uses the key.
            modulus: The modulus that the customer has sent; None to draw a new key with its private half.

        Raises:
            SecureError: The modulus is even or has another number of bits than 2048.
        """
        from phe import paillier  # type: ignore[import-untyped]

        if modulus is None:
            self._public, self._private = paillier.generate_paillier_keypair(n_length=KEY_BITS)
        elif modulus < 0 or modulus.bit_length() != KEY_BITS or modulus % 2 == 0:
            raise SecureError(
                f"the customer's modulus has {modulus.bit_length()} bits; an odd number of {KEY_BITS} is required"
            )
        else:
            self._public = paillier.PaillierPublicKey(modulus)
        self.modulus = int(self._public.n)
        self.ciphertext_bytes = 2 * KEY_BITS // 8
        self._record = record

    def encrypt(self, value: int) -> bytes:
        """Returns a randomised encryption of a number."""
        self._record.counts.paillier_encryptions += 1
        return int(self._public.raw_encrypt(int(value))).to_bytes(self.ciphertext_bytes, "big")

    def add(self, encrypted: Iterable[bytes]) -> bytes:
        """Returns an encryption of the sum of encrypted numbers: the product of their ciphertexts.

        Raises:
            SecureError: One of the encrypted numbers is no ciphertext under this key.
        """
        product, *others = map(self._read, encrypted)
        for other in others:
            product = product * other % self._public.nsquare
        self._record.counts.paillier_multiplications += len(others)
        return product.to_bytes(self.ciphertext_bytes, "big")

    def decrypt(self, encrypted: bytes) -> int:
        """Returns the decrypted number, at least 0 and below the modulus; only the customer can.

        Raises:
            SecureError: ``encrypted`` is no ciphertext under this key.
        """
        value = int(self._private.raw_decrypt(self._read(encrypted)))
        self._record.counts.paillier_decryptions += 1
        if self._record.keeps_transcript:
            self._record.decrypted.append((b"", value.to_bytes(KEY_BITS // 8, "big")))
        return value

    def _read(self, encrypted: bytes) -> int:
        number = int.from_bytes(encrypted, "big")
        if len(encrypted) != self.ciphertext_bytes or not number % self.modulus or number >= self.modulus**2:
            raise SecureError("an encrypted sum or total is no ciphertext under the customer's key")
        return number


_SHOWN = 12  # most scores, or bytes of a ciphertext that the role cannot decrypt, shown of one message
# The kinds of messages that a role can decrypt, since they are encrypted with its key.
_OPENED = {"comp": Kind.SCORES, "customer": Kind.TOTAL, "owner": Kind.MARKS}

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
    rows = []
    for number, (peer, payload) in enumerate(record.received, 1):
        kind, content = Kind(payload[0]), payload[1:]
        # Items were decrypted in the order in which their messages came, so the next one belongs to this message.
        plain = next(opened)[1] if kind is _OPENED.get(role.partition("-")[0]) else None
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
