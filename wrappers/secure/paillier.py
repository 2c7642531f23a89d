"""The customer's key: sums are added up while they are encrypted (Paillier)."""

from collections.abc import Iterable

from fedbandit_envs.wrappers.secure.counts import Counts
from fedbandit_envs.wrappers.secure.errors import ProtocolError
from fedbandit_envs.wrappers.secure.libraries import paillier
from fedbandit_envs.wrappers.secure.transcript import Opened, Transcript

KEY_BITS = 2048


class PublicKey:
    """Encrypts and adds."""

    def __init__(self, modulus: int, counts: Counts) -> None:
        """Takes the modulus n as it was received.

        Raises:
            ProtocolError: It has another length than keys have.
        """
        if modulus < 0 or modulus.bit_length() != KEY_BITS or modulus % 2 == 0:
            raise ProtocolError(
                f"the customer's modulus has {modulus.bit_length()} bits; an odd number of {KEY_BITS} is required"
            )
        self._key = paillier().PaillierPublicKey(modulus)
        self._counts = counts
        self.ciphertext_bytes = 2 * KEY_BITS // 8

    def encrypt(self, value: int) -> bytes:
        """Encrypts a number, at random."""
        self._counts.paillier_encryptions += 1
        return int(self._key.raw_encrypt(int(value))).to_bytes(self.ciphertext_bytes, "big")

    def add(self, encrypted: Iterable[bytes]) -> bytes:
        """Multiplies encrypted numbers, which adds what they hold.

        Raises:
            ProtocolError: One is no ciphertext under this key.
        """
        first, *others = [self._number(one) for one in encrypted]
        product = first
        for other in others:
            product = product * other % self._key.nsquare
        self._counts.paillier_multiplications += len(others)
        return product.to_bytes(self.ciphertext_bytes, "big")

    def _number(self, encrypted: bytes) -> int:
        number = int.from_bytes(encrypted, "big")
        if not 0 < number < self._key.nsquare or number % self._key.n == 0:
            raise ProtocolError("an encrypted sum is no ciphertext under the customer's key")
        return number


class PrivateKey:
    """Decrypts; the customer alone holds it."""

    def __init__(self, counts: Counts, transcript: Transcript | None) -> None:
        """Draws a fresh key."""
        public, self._key = paillier().generate_paillier_keypair(n_length=KEY_BITS)
        self.modulus = int(public.n)
        self._counts = counts
        self._transcript = transcript

    def decrypt(self, encrypted: bytes) -> int:
        """Returns the number encrypted, between 0 and the modulus.

        Raises:
            ProtocolError: This is no ciphertext under the key.
        """
        number = int.from_bytes(encrypted, "big")
        if len(encrypted) != 2 * KEY_BITS // 8 or not 0 < number < self.modulus**2:
            raise ProtocolError("the encrypted total is no ciphertext under the customer's key")
        value = int(self._key.raw_decrypt(number))
        self._counts.paillier_decryptions += 1
        if self._transcript is not None:
            self._transcript.opened.append(Opened(b"", value.to_bytes(KEY_BITS // 8, "big")))
        return value
