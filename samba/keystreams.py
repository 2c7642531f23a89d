"""Pseudorandom streams of the vertical federation: masks, permutations, and the random numbers of picks and owners.

The keys of streams follow from the run's seed, one key for each purpose, so that a run can be repeated wherever its
roles are. A role is given only the keys that it needs, from which the other keys cannot be computed. A stream is
SHAKE-256 of its key and a position: without the key it is indistinguishable from random numbers, and any position can
be computed without those before it.
"""

from hashlib import blake2b, shake_256
from typing import Literal, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_integer

KEY_BYTES = 32

_BLOCK_BYTES = 1 << 16


KeyPurpose = Literal["mask", "permutation", "choice", "common score", "coin", "policy", "reward"]
"""The purpose of a key. Keys are computed from these names, which must never change, or runs could not be repeated."""


def derive_key(seed: int, purpose: KeyPurpose, *numbers: int) -> bytes:
    """Returns the key of 32 bytes that follows from a run's seed for one purpose.

    Args:
        seed: The run's seed, a non-negative integer of any size.
        purpose: The purpose of the key.
        *numbers: Non-negative integers below 2^64 that tell keys of the same purpose apart, such as the number of the
            owner.

    Raises:
        TypeError: ``seed`` is no integer.
        ValueError: ``seed`` is negative.
    """
    require_integer("seed", seed, 0)
    seed = int(seed)
    secret = seed.to_bytes(max(1, (seed.bit_length() + 7) // 8), "little")
    if len(secret) > KEY_BYTES:
        secret = blake2b(secret, digest_size=KEY_BYTES).digest()
    place = b"".join(number.to_bytes(8, "little") for number in numbers)
    return blake2b(place, digest_size=KEY_BYTES, key=secret, person=purpose.encode()).digest()


class Keystream:
    """A pseudorandom stream: 64-bit words that depend only on the key, the round and the iteration.

    Words are computed for a block of rounds at once.

    Example:
        >>> stream = Keystream(bytes(32))
        >>> stream.uniform(7) == Keystream(bytes(32)).uniform(7)
        True
    """

    def __init__(self, key: bytes, width: int = 1) -> None:
        """Makes the stream of a key.

        Args:
            key: The key, 32 bytes.
            width: Number of words for each round and iteration.

        Raises:
            ValueError: The key has another length.
        """
        if len(key) != KEY_BYTES:
            raise ValueError(f"key has {len(key)} bytes; {KEY_BYTES} are required")
        self._key = key
        self._width = width
        self._rounds = max(1, _BLOCK_BYTES // (8 * width))
        self._blocks: dict[int, tuple[int, Array]] = {}

    def words(self, round_: int, iteration: int = 0) -> Array:
        """Returns the pseudorandom words of one round and iteration, uint64 ``(width,)``, read-only."""
        number, place = divmod(round_, self._rounds)
        held, block = self._blocks.get(iteration, (-1, None))
        if block is None or held != number:
            block = self._prepare(self._draw(number, iteration))
            block.flags.writeable = False
            self._blocks[iteration] = (number, block)
        return block[place]

    def uniform(self, round_: int, iteration: int = 0) -> float:
        """Returns the random number of one round and iteration, uniform on (0, 1) without the ends, with 52 bits."""
        return (int(self.words(round_, iteration)[0] >> np.uint64(12)) + 0.5) * 2.0**-52

    def _draw(self, number: int, iteration: int) -> Array:
        place = iteration.to_bytes(8, "little") + number.to_bytes(8, "little")
        drawn = shake_256(self._key + place).digest(8 * self._width * self._rounds)
        return np.frombuffer(drawn, "<u8").astype(np.uint64, copy=False).reshape(self._rounds, self._width)

    def _prepare(self, block: Array) -> Array:
        """Returns the values that :meth:`words` gives for a block of random words ``(rounds, width)``.

        Here these are the words themselves; a subclass may compute others from them.
        """
        return block


class Permutations(Keystream):
    """A pseudorandom stream of permutations of the owners, one for every round and iteration.

    Example:
        >>> sorted(Permutations(bytes(32), owners=4).order(round_=1).tolist())
        [0, 1, 2, 3]
    """

    def __init__(self, key: bytes, owners: int) -> None:
        """Makes the stream of permutations for a key of 32 bytes and a number of owners."""
        super().__init__(key, owners)
        self._places = np.uint64((1 << owners.bit_length()) - 1)

    def order(self, round_: int, iteration: int = 0) -> Array:
        """Returns the permutation, int64 ``(owners,)``: place p of the permuted list holds the item of ``order[p]``."""
        return self.words(round_, iteration)

    def _prepare(self, block: Array) -> Array:
        # The last bits of each random word are replaced by an owner's number. Sorting the words, which differ in their
        # random first bits, then puts the owners' numbers into a random order.
        own = (block & ~self._places) | np.arange(block.shape[1], dtype=np.uint64)
        own.sort(axis=1)
        return (own & self._places).astype(np.int64)


class OwnerKeys(NamedTuple):
    """The keys of one owner's streams, 32 bytes each.

    Attributes:
        mask: The key of the masks by which scores are multiplied, the same for all owners.
        coin: The key of the random numbers that decide in which rounds to explore, the same for all owners and
            Controller.
        policy: The key of the random numbers in the owner's scores.
        reward: The key of the rewards of the owner's arm.
    """

    mask: bytes
    coin: bytes
    policy: bytes
    reward: bytes


def owner_keys(seed: int, owners: int) -> list[OwnerKeys]:
    """Returns the keys of every owner, in the order of arms; an owner's keys do not depend on the number of owners.

    Args:
        seed: The run's seed.
        owners: Number of owners, K.
    """
    mask, coin = derive_key(seed, "mask"), derive_key(seed, "coin")
    return [
        OwnerKeys(mask, coin, derive_key(seed, "policy", i), derive_key(seed, "reward", i))
        for i in range(owners)
    ]
