"""Encryption of scores and marks, one by one, under the key that data owners share with Comp.

An encrypted item is a random nonce (12 bytes), the item under AES-256-GCM, and a tag (16 bytes). Its associated data
are direction, round and iteration, so that it decrypts nowhere else. They do not contain the owner: Comp must not
learn whose score it decrypts.
"""

import os
from itertools import repeat
from struct import pack
from typing import NamedTuple

import numpy as np

from fedbandit_envs.samba.crypto.libraries import AEAD, load
from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.record import Record

_NONCE_BYTES = 12
_TAG_BYTES = 16


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
    def layout(self) -> np.dtype:
        """The parts of an encrypted item: its nonce, and what AES-256-GCM makes of the item (with the tag)."""
        return np.dtype([("nonce", f"V{_NONCE_BYTES}"), ("sealed", f"V{self.size + _TAG_BYTES}")])

    @property
    def encrypted_size(self) -> int:
        """Bytes of an item after encryption."""
        return self.layout.itemsize

    def associated_data(self, round_: int, iteration: int) -> bytes:
        """Returns the associated data of all items of this type in one iteration of a round."""
        return pack(">BQI", self.direction, round_, iteration)


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
        cipher = load(AEAD).AESGCM(key)
        self._encrypt, self._decrypt = cipher.encrypt, cipher.decrypt
        self._invalid_tag = load("cryptography.exceptions").InvalidTag
        self._left = max_encryptions
        self._record = record

    def encrypt(self, items: bytes, type_: ItemType, round_: int, iteration: int) -> bytes:
        """Returns the encrypted items, one after another.

        Args:
            items: The items, one after another.
            type_: Scores or marks.
            round_: The round t, counted from 1.
            iteration: The iteration within the round, counted from 0.

        Raises:
            SecureError: This holder of the key may not encrypt as many more items.
        """
        number = len(items) // type_.size
        if number > self._left:
            raise SecureError(
                "the key of owners and Comp has been used up; it allows 2^32 encryptions in a run"
            )
        bound = type_.associated_data(round_, iteration)
        plain = np.frombuffer(items, f"V{type_.size}").tolist()
        encrypted = np.empty(number, type_.layout)
        encrypted["nonce"] = nonces = np.frombuffer(os.urandom(number * _NONCE_BYTES), f"V{_NONCE_BYTES}")
        sealed = b"".join(map(self._encrypt, nonces.tolist(), plain, repeat(bound)))
        encrypted["sealed"] = np.frombuffer(sealed, encrypted.dtype["sealed"])
        self._left -= number
        self._record.counts.aes_encryptions += number
        return encrypted.tobytes()

    def decrypt(self, encrypted: bytes, number: int, type_: ItemType, round_: int, iteration: int) -> bytes:
        """Returns the decrypted items, one after another; all of them must be authentic.

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
        if len(encrypted) != number * type_.encrypted_size:
            raise SecureError(
                f"encrypted items have {len(encrypted)} bytes; {number * type_.encrypted_size} are required"
            )
        bound = type_.associated_data(round_, iteration)
        parts = np.frombuffer(encrypted, type_.layout)
        try:
            plain = b"".join(
                map(self._decrypt, parts["nonce"].tolist(), parts["sealed"].tolist(), repeat(bound))
            )
        except self._invalid_tag as error:
            raise SecureError(
                f"an encrypted {type_.name} does not decrypt as one of round {round_}, iteration {iteration}: it was "
                "modified, comes from another place or round, or was encrypted with another key"
            ) from error
        self._record.counts.aes_decryptions += number
        self._record.add_decrypted(bound, plain)
        return plain
