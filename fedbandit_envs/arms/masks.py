"""Keyed streams of the vertical federation: what hides scores and owners, what breaks ties, and the owners' luck.

All keys of a run follow from its seed, one a purpose, so that a run repeats wherever its roles are; a role is given the
keys of its own part and can find no other's from them. A stream is SHAKE-256 of its key and of the place in it: who
lacks the key cannot tell it from noise, and any place of it is known without those before.
"""

from enum import Enum
from hashlib import blake2b, shake_256
from typing import NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.checks import require_integer

KEY_BYTES = 32

_BLOCK_BYTES = 1 << 16


class Purpose(Enum):
    """What a key is for; its value is part of the reproducibility contract."""

    MASK = b"mask"
    PERMUTATION = b"permutation"
    CHOICE = b"choice"
    COMMON_SCORE = b"common score"
    COIN = b"coin"
    POLICY = b"policy"
    REWARD = b"reward"


def derive_key(seed: int, purpose: Purpose, *numbers: int) -> bytes:
    """Returns the key of a purpose, 32 bytes.

    Args:
        seed: The run's, a non-negative integer of any size.
        purpose: What it is for.
        *numbers: Non-negative integers below 2^64 that name a key of its own: an owner's number.

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
    return blake2b(place, digest_size=KEY_BYTES, key=secret, person=purpose.value).digest()


class Keystream:
    """Words for every round and iteration, drawn in blocks of rounds."""

    def __init__(self, key: bytes, width: int = 1) -> None:
        """Starts a stream.

        Args:
            key: 32 bytes.
            width: Words a round and iteration.

        Raises:
            ValueError: The key has another length.
        """
        if len(key) != KEY_BYTES:
            raise ValueError(f"key has {len(key)} bytes; {KEY_BYTES} are required")
        require_integer("width", width, 1)
        self._key = key
        self._width = width
        self._rounds = max(1, _BLOCK_BYTES // (8 * width))
        self._blocks: dict[int, tuple[int, Array]] = {}

    def words(self, round_: int, iteration: int = 0) -> Array:
        """Returns the words of one round and iteration, uint64 ``(width,)``, read-only."""
        number, place = divmod(round_, self._rounds)
        held, block = self._blocks.get(iteration, (-1, None))
        if block is None or held != number:
            block = self._prepare(self._draw(number, iteration))
            block.flags.writeable = False
            self._blocks[iteration] = (number, block)
        return block[place]

    def uniform(self, round_: int, iteration: int = 0) -> float:
        """Returns a number uniform on the open interval (0, 1), of 52 bits."""
        return (int(self.words(round_, iteration)[0] >> np.uint64(12)) + 0.5) * 2.0**-52

    def _draw(self, number: int, iteration: int) -> Array:
        place = iteration.to_bytes(8, "little") + number.to_bytes(8, "little")
        drawn = shake_256(self._key + place).digest(8 * self._width * self._rounds)
        return np.frombuffer(drawn, "<u8").astype(np.uint64, copy=False).reshape(self._rounds, self._width)

    def _prepare(self, block: Array) -> Array:
        """Turns a block of words, ``(rounds, width)``, into what is handed out."""
        return block


class Permutations(Keystream):
    """A permutation of the owners for every round and iteration."""

    def __init__(self, key: bytes, owners: int) -> None:
        """Starts the stream of one key, 32 bytes, for some number of owners."""
        super().__init__(key, owners)
        self._places = np.uint64((1 << owners.bit_length()) - 1)

    def order(self, round_: int, iteration: int = 0) -> Array:
        """Returns who stands where, int64 ``(owners,)``: place p of the permuted list holds what ``order[p]`` sent."""
        return self.words(round_, iteration)

    def _prepare(self, block: Array) -> Array:
        # Random words whose last bits say whose they are: sorted, they say the owners in a random order.
        own = (block & ~self._places) | np.arange(block.shape[1], dtype=np.uint64)
        own.sort(axis=1)
        return (own & self._places).astype(np.int64)


class OwnerKeys(NamedTuple):
    """What an owner holds.

    Attributes:
        mask: Of the masks, common to all owners.
        coin: Of the coin that says when to explore, common to all owners.
        policy: Of the luck of the owner's own policy.
        reward: Of the owner's own rewards.
    """

    mask: bytes
    coin: bytes
    policy: bytes
    reward: bytes


def owner_keys(seed: int, owners: int) -> list[OwnerKeys]:
    """Returns the keys of every owner; an owner's do not depend on how many there are.

    Args:
        seed: The run's.
        owners: Number of owners, K.
    """
    mask, coin = (derive_key(seed, purpose) for purpose in (Purpose.MASK, Purpose.COIN))
    return [
        OwnerKeys(mask, coin, derive_key(seed, Purpose.POLICY, i), derive_key(seed, Purpose.REWARD, i))
        for i in range(owners)
    ]


class Streams:
    """What selects in one process: the masks, permutations and draws that are otherwise spread over the roles."""

    def __init__(self, seed: int, owners: int) -> None:
        """Derives the keys of a run.

        Args:
            seed: The run's, a non-negative integer.
            owners: Number of owners, K.

        Raises:
            TypeError: An argument is no integer.
            ValueError: It is out of its range.
        """
        require_integer("owners", owners, 1)
        self._masks = Keystream(derive_key(seed, Purpose.MASK))
        self._permutations = Permutations(derive_key(seed, Purpose.PERMUTATION), owners)
        self._draws = Keystream(derive_key(seed, Purpose.CHOICE))
        self._common = Keystream(derive_key(seed, Purpose.COMMON_SCORE))

    def mask(self, round_: int, iteration: int) -> float:
        """Returns alpha_t in (0, 1), by which all owners multiply their scores."""
        return self._masks.uniform(round_, iteration)

    def permutation(self, round_: int, iteration: int) -> Array:
        """Returns who stands where in the permuted list, int64 ``(owners,)``; see :meth:`Permutations.order`."""
        return self._permutations.order(round_, iteration)

    def uniform(self, round_: int, iteration: int) -> float:
        """Returns the draw in (0, 1) by which Comp picks in proportion."""
        return self._draws.uniform(round_, iteration)

    def common_score(self, round_: int) -> float:
        """Returns the score in (0, 1) that Controller gives to all owners in a round of exploration."""
        return self._common.uniform(round_)
