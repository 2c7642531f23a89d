"""Seed sequences that are made at once have the words of NumPy's, and noise the streams of agents one by one."""

import pickle
from hashlib import blake2b

import numpy as np
import pytest

from fedbandit_envs.randomness.streams import Purpose, generate_states, noise_streams, stream


@pytest.mark.parametrize("words", [1, 4, 6, 31])
def test_words_are_numpys(words):
    entropy = np.random.default_rng(0).integers(0, 2**32, (200, 4), np.uint32)
    # Numbers with fewer than 128 bits, of which NumPy reads fewer words.
    entropy[0], entropy[1, 1:], entropy[2, 3], entropy[3] = 0, 0, 0, 2**32 - 1
    numbers = [sum(int(word) << 32 * i for i, word in enumerate(row)) for row in entropy]
    theirs = [np.random.SeedSequence(number).generate_state(words) for number in numbers]
    for rows in (200, 5):
        np.testing.assert_array_equal(generate_states(entropy[:rows], words), theirs[:rows])


def first(generators):
    return [[generator.integers(2**63) for generator in row] for row in generators]


def test_noise_of_agents_is_that_of_single_streams():
    seeds = [5, 2**100, 5]
    alone = [[stream(seed, Purpose.NOISE, agent) for agent in range(4)] for seed in seeds]
    assert first(noise_streams(seeds, 4, None, 3)) == first(alone)


@pytest.mark.parametrize("entropy", [9, np.uint64(9), [9, 2**70]])
def test_secret_noise_is_that_of_single_streams(entropy):
    """The second replica of a seed has noise of its own."""
    words = [9, 2**70] if isinstance(entropy, list) else [9]
    seeds, twins = [5, 2**100, 5], [0, 0, 1]

    def generator(seed, twin, agent):
        name = repr([[len(words), *words, seed], int(Purpose.NOISE), 3, twin, agent])
        digest = blake2b(name.encode(), digest_size=16).digest()
        return np.random.Generator(np.random.SFC64(int.from_bytes(digest, "little")))

    alone = [[generator(*row, agent) for agent in range(4)] for row in zip(seeds, twins, strict=True)]
    assert first(noise_streams(seeds, 4, entropy, 3)) == first(alone)


def test_a_generator_of_noise_goes_on_after_pickling():
    generator = noise_streams([1], 2, None, 0)[0][1]
    assert pickle.loads(pickle.dumps(generator)).random() == generator.random()
