"""Draws in vector lanes: xoshiro128++ (Blackman and Vigna 2021), a stream a lane, seeded by NumPy's SeedSequence."""

from collections.abc import Sequence

import numpy as np

from fedbandit_envs.basics.compiled import allocating_kernel as kernel
from fedbandit_envs.randomness.draws import fill_bits

WIDTH = 32
"""Lanes of those who need no other number: how many words are made at once."""


def fresh_lanes(seed: int | Sequence[int], width: int = WIDTH) -> np.ndarray:
    """Returns the four words of every lane's state, uint32 ``(4, width)``."""
    return np.random.SeedSequence(seed).generate_state(4 * width, np.uint32).reshape(4, width)


@kernel
def refill(lanes, words):
    """Writes one word of 32 bits for each lane into ``words``, uint32 ``(width,)``, and moves all lanes on."""
    first, second, third, fourth = lanes[0], lanes[1], lanes[2], lanes[3]
    for i in range(words.shape[0]):
        a, b, c, d = first[i], second[i], third[i], fourth[i]
        mixed = np.uint32(a + d)
        turned = np.uint32(np.uint32(mixed << np.uint32(7)) | np.uint32(mixed >> np.uint32(25)))
        words[i] = np.uint32(turned + a)
        shifted = np.uint32(b << np.uint32(9))
        c = np.uint32(c ^ a)
        d = np.uint32(d ^ b)
        first[i] = np.uint32(a ^ d)
        second[i] = np.uint32(b ^ c)
        third[i] = np.uint32(c ^ shifted)
        fourth[i] = np.uint32(np.uint32(d << np.uint32(11)) | np.uint32(d >> np.uint32(21)))


@kernel
def xoshiro_words(lanes, words, times):
    """Fills ``words`` again and again by :func:`refill`."""
    for _ in range(times):
        refill(lanes, words)


@kernel
def threefry_words(key0, key1, words, times):
    """Fills ``words`` again and again by the package's generator, which knows neither order nor state."""
    for t in range(times):
        fill_bits(key0, key1, t, words)


class Words:
    """Random words, ``WIDTH`` an agent and round, and nothing else."""

    def __init__(self, seeds, threefry: bool = False) -> None:
        self._rows = 10 * len(seeds)
        self._words = np.empty(WIDTH, np.uint32)
        self._lanes = fresh_lanes(0)
        self._threefry = threefry

    def play(self, rounds: int) -> None:
        if self._threefry:
            threefry_words(np.uint32(1), np.uint32(2), self._words, rounds * self._rows)
        else:
            xoshiro_words(self._lanes, self._words, rounds * self._rows)
