"""Keyed streams of the vertical federation: keys, words, masks and permutations."""

from hashlib import blake2b, shake_256
from itertools import permutations
from typing import get_args

import numpy as np
import pytest

from fedbandit_envs.samba.keys import KeyPurpose, Keystream, Permutations, deal_keys, derive_key, owner_keys


def test_keys_and_words_are_the_hashes_that_they_are_said_to_be():
    key = blake2b((3).to_bytes(8, "little"), digest_size=32, key=b"\x39\x30", person=b"reward").digest()
    assert derive_key(12345, "reward", 3) == key
    block = shake_256(key + (1).to_bytes(8, "little") + bytes(8)).digest(1 << 16)
    words = [int.from_bytes(block[8 * t : 8 * t + 8], "little") for t in range(6)]
    stream = Keystream(key)
    assert [int(stream.words(t, 1)[0]) for t in range(6)] == words
    assert [stream.uniform(t, 1) for t in range(6)] == [((word >> 12) + 0.5) / 2**52 for word in words]


def test_every_key_is_its_own():
    keys = [
        derive_key(seed, purpose) for seed in (0, 1, 256, 2**255, 2**300) for purpose in get_args(KeyPurpose)
    ]
    keys += [key for own in owner_keys(0, 5) for key in own[2:]]
    assert len({*keys}) == len(keys)
    assert owner_keys(7, 5)[:3] == owner_keys(7, 3)


@pytest.mark.parametrize("width", [1, 7, 10_000])
def test_words_are_known_by_their_place(width):
    key = derive_key(0, "mask")
    places = [(1, 0), (9000, 0), (2, 1), (1, 0), (8192, 1), (9000, 0)]
    together = Keystream(key, width)
    for place in places:
        np.testing.assert_array_equal(together.words(*place), Keystream(key, width).words(*place))
    assert len({tuple(Keystream(key, width).words(*place)[:4]) for place in places}) == 4


def test_ends_of_the_interval_are_never_drawn():
    stream = Keystream(bytes(32))
    for word, uniform in ((0, 2.0**-53), (2**64 - 1, 1 - 2.0**-53)):
        stream.words = lambda *place, word=word: np.array([word], np.uint64)
        assert stream.uniform(0) == uniform


@pytest.mark.parametrize("owners", [1, 2, 3, 4, 64, 100])
def test_permutations_are_permutations(owners):
    orders = Permutations(derive_key(0, "permutation"), owners)
    for t in range(50):
        assert sorted(orders.order(t, t % 2)) == list(range(owners))


def test_permutations_are_uniform():
    """Chi-square with 23 degrees of freedom: above 58.6 in 1 of 10,000 runs, were the seed not fixed."""
    orders = Permutations(derive_key(1, "permutation"), 4)
    counts = dict.fromkeys(permutations(range(4)), 0)
    for t in range(24_000):
        counts[tuple(orders.order(t))] += 1
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 58.6


def test_a_key_file_is_new_and_its_owners_alone(tmp_path):
    ring = deal_keys(0, [1])["owner-0"]
    ring.save(tmp_path / "keys.json")
    assert (tmp_path / "keys.json").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        ring.save(tmp_path / "keys.json")
