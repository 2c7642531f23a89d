"""Paillier encryption of the owners' sums of rewards: encrypted sums can be added without the private key."""

from collections.abc import Iterable
from types import ModuleType

from fedbandit_envs.samba.crypto.libraries import load
from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.record import Record

KEY_BITS = 2048


class PublicKey:
    """The customer's public key, with which owners encrypt and Controller adds."""

    def __init__(self, modulus: int, record: Record) -> None:
        """Makes the key from a modulus that was received.

        Args:
            modulus: n, the product of the customer's two primes.
            record: The record of the role that uses the key.

        Raises:
            SecureError: The modulus is even or has another length than keys have.
        """
        if modulus < 0 or modulus.bit_length() != KEY_BITS or modulus % 2 == 0:
            raise SecureError(
                f"the customer's modulus has {modulus.bit_length()} bits; an odd number of {KEY_BITS} is required"
            )
        self._key = _paillier().PaillierPublicKey(modulus)
        self._counts = record.counts
        self.ciphertext_bytes = 2 * KEY_BITS // 8

    def encrypt(self, value: int) -> bytes:
        """Returns a randomised encryption of a number."""
        self._counts.paillier_encryptions += 1
        return int(self._key.raw_encrypt(int(value))).to_bytes(self.ciphertext_bytes, "big")

    def add(self, encrypted: Iterable[bytes]) -> bytes:
        """Returns an encryption of the sum of encrypted numbers: the product of their ciphertexts.

        Raises:
            SecureError: One of them is no ciphertext under this key.
        """
        first, *others = [_read_ciphertext(one, self._key.n) for one in encrypted]
        product = first
        for other in others:
            product = product * other % self._key.nsquare
        self._counts.paillier_multiplications += len(others)
        return product.to_bytes(self.ciphertext_bytes, "big")


class PrivateKey:
    """The customer's private key, with which it decrypts the total."""

    def __init__(self, record: Record) -> None:
        """Draws a fresh key for the role of this record."""
        public, self._key = _paillier().generate_paillier_keypair(n_length=KEY_BITS)
        self.modulus = int(public.n)
        self._record = record

    def decrypt(self, encrypted: bytes) -> int:
        """Returns the encrypted number, at least 0 and below the modulus.

        Raises:
            SecureError: ``encrypted`` is no ciphertext under this key.
        """
        value = int(self._key.raw_decrypt(_read_ciphertext(encrypted, self.modulus)))
        self._record.counts.paillier_decryptions += 1
        self._record.add_decrypted(b"", value.to_bytes(KEY_BITS // 8, "big"))
        return value


def _read_ciphertext(encrypted: bytes, modulus: int) -> int:
    """Returns the number that a ciphertext is, if it can be one under the key of this modulus."""
    number = int.from_bytes(encrypted, "big")
    if len(encrypted) != 2 * KEY_BITS // 8 or not 0 < number < modulus**2 or number % modulus == 0:
        raise SecureError("an encrypted sum or total is no ciphertext under the customer's key")
    return number


def _paillier() -> ModuleType:
    """Returns the module ``phe.paillier``, after making sure that it computes with gmpy2."""
    load("gmpy2")
    return load("phe.paillier")
