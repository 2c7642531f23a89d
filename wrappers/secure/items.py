"""The key of owners and Comp: scores and marks are encrypted one by one, all of a list in one call.

An encrypted item is a random nonce (12 bytes), the item and a tag (16 bytes). It is bound to direction, round and
iteration, never to an owner: Comp must not learn whose score it opens.
"""

import os
from itertools import repeat
from struct import Struct

import numpy as np

from fedbandit_envs.wrappers.secure.counts import Counts
from fedbandit_envs.wrappers.secure.errors import CiphertextError, KeyExhaustedError, ProtocolError
from fedbandit_envs.wrappers.secure.libraries import aes_gcm, invalid_tag
from fedbandit_envs.wrappers.secure.transcript import Opened, Transcript

SCORE_BYTES = 8
MARK_BYTES = 1
SCORES_DIRECTION = 1
"""Owners to Comp."""
MARKS_DIRECTION = 2
"""Comp to owners."""

_NONCE_BYTES = 12
_TAG_BYTES = 16
_NONCES_AHEAD = 512
_BOUND = Struct(">BQI")


def encrypted_bytes(width: int) -> int:
    """Returns the length of an encrypted item of ``width`` bytes."""
    return _NONCE_BYTES + width + _TAG_BYTES


def bound_to(direction: int, round_: int, iteration: int) -> bytes:
    """Returns the associated data of all items of a direction, round and iteration."""
    return _BOUND.pack(direction, round_, iteration)


class ItemCipher:
    """AES-256-GCM for lists of items, with random nonces."""

    def __init__(self, key: bytes, most: int, counts: Counts, transcript: Transcript | None) -> None:
        """Sets the cipher up.

        Args:
            key: 32 bytes, fresh in every run.
            most: So many items this holder of the key may encrypt; holders share 2^32 among them.
            counts: Of the role that holds it.
            transcript: Of that role, or None.
        """
        cipher = aes_gcm(key)
        self._encrypt, self._decrypt = cipher.encrypt, cipher.decrypt
        self._invalid_tag = invalid_tag()
        self._left = most
        self._nonces = b""
        self._used = 0
        self._splits: dict[tuple[int, ...], Struct] = {}
        self._counts = counts
        self._transcript = transcript

    def encrypt(self, items: bytes, width: int, bound: bytes) -> bytes:
        """Encrypts items of ``width`` bytes each.

        Raises:
            KeyExhaustedError: The key has encrypted as often as it may.
        """
        number = len(items) // width
        if number > self._left:
            raise KeyExhaustedError("the key of owners and Comp is worn out; a run must end before 2^32 uses")
        nonces = self._draw(number)
        sealed = b"".join(
            map(
                self._encrypt,
                self._split(nonces, number, _NONCE_BYTES),
                self._split(items, number, width),
                repeat(bound),
            )
        )
        self._left -= number
        self._counts.aes_encryptions += number
        out = np.empty((number, encrypted_bytes(width)), np.uint8)
        out[:, :_NONCE_BYTES] = np.frombuffer(nonces, np.uint8).reshape(number, -1)
        out[:, _NONCE_BYTES:] = np.frombuffer(sealed, np.uint8).reshape(number, -1)
        return out.tobytes()

    def decrypt(self, encrypted: bytes, number: int, width: int, bound: bytes) -> bytes:
        """Decrypts items; all of them, or none.

        Args:
            encrypted: Items one after another, as they were encrypted.
            number: How many there are.
            width: Bytes of an item in the open.
            bound: The associated data that they were encrypted with, see :func:`bound_to`.

        Raises:
            ProtocolError: There is another number of bytes.
            CiphertextError: An item was changed, encrypted with another key, or bound to something else.
        """
        if len(encrypted) != number * encrypted_bytes(width):
            raise ProtocolError(
                f"encrypted items have {len(encrypted)} bytes; {number * encrypted_bytes(width)} are required"
            )
        parts = self._split(encrypted, number, _NONCE_BYTES, width + _TAG_BYTES)
        try:
            plain = b"".join(map(self._decrypt, parts[::2], parts[1::2], repeat(bound)))
        except self._invalid_tag as error:
            direction, round_, iteration = _BOUND.unpack(bound)
            what = "score" if direction == SCORES_DIRECTION else "mark"
            raise CiphertextError(
                f"an encrypted {what} does not open as one of round {round_}, iteration {iteration}: it was changed, "
                "comes from another place or round, or was encrypted with another key"
            ) from error
        self._counts.aes_decryptions += number
        if self._transcript is not None:
            self._transcript.opened.append(Opened(bound, plain))
        return plain

    def _draw(self, number: int) -> bytes:
        """Returns nonces out of a block drawn ahead."""
        length = number * _NONCE_BYTES
        if self._used + length > len(self._nonces):
            self._nonces = os.urandom(max(_NONCES_AHEAD, number) * _NONCE_BYTES)
            self._used = 0
        self._used += length
        return self._nonces[self._used - length : self._used]

    def _split(self, data: bytes, number: int, *widths: int) -> tuple[bytes, ...]:
        """Cuts ``number`` times into parts of these widths; a loop in Python would cost as much as the encryption."""
        split = self._splits.get((number, *widths))
        if split is None:
            split = self._splits[number, *widths] = Struct("".join(f"{width}s" for width in widths) * number)
        return split.unpack(data)
