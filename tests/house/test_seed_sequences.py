"""Noise has the streams of agents one by one, and secret noise those of the hash of its name."""

from hashlib import blake2b

import numpy as np
import pytest

from fedbandit_envs.randomness.streams import Purpose, noise_streams, stream


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
