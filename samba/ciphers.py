"""Encryption: links between roles, scores and marks, and the owners' sums, by the ciphers of well-known libraries.

A frame on a link is a sequence number (8 bytes) and the message under AES-256-GCM, with that number as the nonce; so no
nonce is used twice with the same key. An observer sees nothing but the lengths of messages. A frame that was modified,
repeated, swapped with another, taken from another link, or sent after a frame that got lost is refused.

An item is a score or a mark. An encrypted item is a random nonce (12 bytes), the item under AES-256-GCM, and a tag (16
bytes). Its associated data are direction, round and iteration, so that it cannot be decrypted as an item of another
direction, round or iteration. They do not contain the owner: Comp must not learn whose score it decrypts.
"""

import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import repeat

import numpy as np

from fedbandit_envs.samba.messages import (
    NONCE_BYTES,
    TAG_BYTES,
    ItemType,
    MissingExtraError,
    Record,
    SecureError,
)


def require_extra() -> None:
    """Looks for all libraries of the ``[secure]`` extra, so that a run without them fails before it starts.

    Everything else that needs one of them imports it when it is called.

    Raises:
        MissingExtraError: A library is missing; the message says how to install the extra.
    """
    for name in ("cryptography", "gmpy2", "phe"):
        if find_spec(name) is None:
            raise MissingExtraError(
                f"{name} is missing; the secure protocol needs the [secure] extra: "
                "python -m pip install 'fedbandit-envs[secure]'"
            )


_NUMBER_BYTES = 8
MIN_FRAME_BYTES = _NUMBER_BYTES + TAG_BYTES + 1
"""Number of bytes of the shortest possible frame, whose message (the payload) has one byte."""


class Link:
    """One role's end of a link to a peer: it encrypts the frames to the peer and decrypts those from the peer."""

    def __init__(self, peer: str, keys: Sequence[bytes], max_bytes: int, record: Record) -> None:
        """Sets up a link on which no frame has been sent yet.

        Args:
            peer: Name of the role at the other end.
            keys: The key of frames to the peer and the key of frames from the peer, both new, 32 bytes each.
            max_bytes: Length of the longest frame that is accepted.
            record: The record of the role at this end; it counts frames sent and keeps messages received.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.peer = peer
        self.max_bytes = max_bytes
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

        The link expects the same frame again until :meth:`accept` is called.

        Raises:
            SecureError: The frame is not the next one in order, was modified, or is too short or too long.
        """
        from cryptography.exceptions import InvalidTag

        peer, expected = self.peer, self._received
        if not MIN_FRAME_BYTES <= len(frame) <= self.max_bytes:
            allowed = f"{MIN_FRAME_BYTES} to {self.max_bytes}"
            raise SecureError(f"a frame from {peer} has {len(frame)} bytes; {allowed} are required", peer)
        number = int.from_bytes(frame[:_NUMBER_BYTES], "big")
        if number != expected:
            raise SecureError(f"frame {number} came from {peer}; frame {expected} is the next", peer)
        try:
            payload = self._receiving.decrypt(bytes(4) + frame[:_NUMBER_BYTES], frame[_NUMBER_BYTES:], None)
        except InvalidTag as error:
            raise SecureError(
                f"frame {number} from {peer} has a wrong tag: it was modified, or sealed with another key",
                peer,
            ) from error
        return payload

    def accept(self, payload: bytes) -> None:
        """Makes the link expect the next frame, after the role has accepted the message of this one."""
        self._received += 1
        self._record.add_received(self.peer, payload)


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

        if len(encrypted) != number * type_.encrypted_size:
            raise SecureError(
                f"encrypted items have {len(encrypted)} bytes; {number * type_.encrypted_size} are required"
            )
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
        self._record.add_decrypted(bound, plain)
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
        self._record.add_decrypted(b"", value.to_bytes(KEY_BITS // 8, "big"))
        return value

    def _read(self, encrypted: bytes) -> int:
        number = int.from_bytes(encrypted, "big")
        if len(encrypted) != self.ciphertext_bytes or not number % self.modulus or number >= self.modulus**2:
            raise SecureError("an encrypted sum or total is no ciphertext under the customer's key")
        return number
