"""Encryption of scores and marks, one by one, under the key that data owners share with Comp.

An encrypted item is a random nonce (12 bytes), the item under AES-256-GCM, and a tag (16 bytes). Its associated data
are direction, round and iteration, so that it decrypts nowhere else. They do not contain the owner: Comp must not
learn whose score it decrypts.
"""

import os
from itertools import repeat
from struct import Struct
from typing import NamedTuple

import numpy as np

from fedbandit_envs.samba.crypto.libraries import aes_gcm, invalid_tag
from fedbandit_envs.samba.errors import CiphertextError, KeyExhaustedError, ProtocolError
from fedbandit_envs.samba.record import Record

_NONCE_BYTES = 12
_TAG_BYTES = 16
_NONCES_AHEAD = 512
_ASSOCIATED_DATA = Struct(">BQI")


class ItemType(NamedTuple):
    """A type of encrypted item: :data:`SCORE` or :data:`MARK`.

    Attributes:
        name: Its name in error messages.
        size: Bytes of an item before encryption.
        direction: The number that stands for sender and receiver in the associated data.
    """

    name: str
    size: int
    direction: int

    @property
    def encrypted_size(self) -> int:
        """Bytes of an item after encryption."""
        return _NONCE_BYTES + self.size + _TAG_BYTES

    def associated_data(self, round_: int, iteration: int) -> bytes:
        """Returns the associated data of all items of this type in one iteration of a round."""
        return _ASSOCIATED_DATA.pack(self.direction, round_, iteration)


SCORE = ItemType("score", 8, 1)
"""A masked score, float64 (little-endian), from an owner to Comp."""
MARK = ItemType("mark", 1, 2)
"""One byte from Comp to an owner: 1 if the owner is picked, else 0."""


class ItemCipher:
    """AES-256-GCM for lists of items, with random nonces."""

    def __init__(self, key: bytes, max_encryptions: int, record: Record) -> None:
        """Sets the cipher up.

        Args:
            key: 32 bytes, fresh in every run.
            max_encryptions: Number of items that this holder of the key may encrypt; all holders together may encrypt
                2^32.
            record: The record of the role that holds the cipher.
        """
        cipher = aes_gcm(key)
        self._encrypt, self._decrypt = cipher.encrypt, cipher.decrypt
        self._invalid_tag = invalid_tag()
        self._left = max_encryptions
        self._nonces = b""
        self._used = 0
        self._splits: dict[tuple[int, ...], Struct] = {}
        self._record = record

    def encrypt(self, items: bytes, type_: ItemType, round_: int, iteration: int) -> bytes:
        """Returns the encrypted items, one after another.

        Args:
            items: The items, one after another.
            type_: Scores or marks.
            round_: The round t, counted from 1.
            iteration: The iteration within the round, counted from 0.

        Raises:
            KeyExhaustedError: This holder of the key may not encrypt as many more items.
        """
        number = len(items) // type_.size
        if number > self._left:
            raise KeyExhaustedError(
                "the key of owners and Comp has been used up; it allows 2^32 encryptions in a run"
            )
        nonces = self._draw_nonces(number)
        sealed = b"".join(
            map(
                self._encrypt,
                self._split(nonces, number, _NONCE_BYTES),
                self._split(items, number, type_.size),
                repeat(type_.associated_data(round_, iteration)),
            )
        )
        self._left -= number
        self._record.counts.aes_encryptions += number
        out = np.empty((number, type_.encrypted_size), np.uint8)
        out[:, :_NONCE_BYTES] = np.frombuffer(nonces, np.uint8).reshape(number, -1)
        out[:, _NONCE_BYTES:] = np.frombuffer(sealed, np.uint8).reshape(number, -1)
        return out.tobytes()

    def decrypt(self, encrypted: bytes, number: int, type_: ItemType, round_: int, iteration: int) -> bytes:
        """Returns the decrypted items, one after another; all of them must be authentic.

        Args:
            encrypted: The encrypted items, one after another.
            number: Number of items.
            type_: Scores or marks.
            round_: The round t, counted from 1.
            iteration: The iteration within the round, counted from 0.

        Raises:
            ProtocolError: ``encrypted`` has another length than ``number`` items have.
            CiphertextError: An item was modified, or encrypted with another key, type, round or iteration.
        """
        if len(encrypted) != number * type_.encrypted_size:
            raise ProtocolError(
                f"encrypted items have {len(encrypted)} bytes; {number * type_.encrypted_size} are required"
            )
        bound = type_.associated_data(round_, iteration)
        parts = self._split(encrypted, number, _NONCE_BYTES, type_.size + _TAG_BYTES)
        try:
            plain = b"".join(map(self._decrypt, parts[::2], parts[1::2], repeat(bound)))
        except self._invalid_tag as error:
            raise CiphertextError(
                f"an encrypted {type_.name} does not decrypt as one of round {round_}, iteration {iteration}: it was "
                "modified, comes from another place or round, or was encrypted with another key"
            ) from error
        self._record.counts.aes_decryptions += number
        self._record.add_decrypted(bound, plain)
        return plain

    def _draw_nonces(self, number: int) -> bytes:
        """Returns fresh nonces out of a block drawn ahead, since every call of the system takes time."""
        length = number * _NONCE_BYTES
        if self._used + length > len(self._nonces):
            self._nonces = os.urandom(max(_NONCES_AHEAD, number) * _NONCE_BYTES)
            self._used = 0
        self._used += length
        return self._nonces[self._used - length : self._used]

    def _split(self, data: bytes, number: int, *widths: int) -> tuple[bytes, ...]:
        """Cuts data into ``number`` repetitions of parts of these widths.

        A loop in Python would take as long as the encryption.
        """
        split = self._splits.get((number, *widths))
        if split is None:
            split = self._splits[number, *widths] = Struct("".join(f"{width}s" for width in widths) * number)
        return split.unpack(data)
