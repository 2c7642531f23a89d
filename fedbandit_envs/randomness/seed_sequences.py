"""Many of NumPy's random generators at once: seeded as by ``SeedSequence``, in a few array operations for all.

NumPy seeds one generator in 15 microseconds, and a private federation of thousands of agents needs as many.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence

Words = npt.NDArray[np.uint32]
"""Words of 32 bits."""

_POOL = 4


class _KnownState(ISeedSequence):
    """A seed sequence whose words have been generated already."""

    def __init__(self, words: npt.NDArray[Any]) -> None:
        """Takes all words that a bit generator asks for, in the dtype in which it asks for them."""
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> npt.NDArray[Any]:
        """Returns the words."""
        return self._words


def generators(entropy: Words) -> list[np.random.Generator]:
    """Returns ``Generator(SFC64(SeedSequence(entropy)))`` for the entropy of each of many sequences.

    Args:
        entropy: 128 bits for each sequence, the lowest word first, uint32 ``(sequences, 4)``.
    """
    states = generate_states(entropy, 6).view(np.uint64)
    return [np.random.Generator(np.random.SFC64(cast(Any, _KnownState(state)))) for state in states]


def generate_states(entropy: Words, words: int) -> Words:
    """Returns what ``SeedSequence(entropy).generate_state(words)`` returns, for many sequences.

    Args:
        entropy: The entropy of each sequence, 128 bits with the lowest word first, uint32 ``(sequences, 4)``.
        words: Number of words of each sequence.

    Returns:
        Their words, uint32 ``(sequences, words)``.
    """
    hashed = _hasher(0x43B0D7E5, 0x931E8875)
    pool = [hashed(word) for word in entropy.T]
    for source in range(_POOL):
        for target in range(_POOL):
            if target != source:
                mixed = pool[target] * np.uint32(0xCA01F9DD) - hashed(pool[source]) * np.uint32(0x4973F715)
                pool[target] = mixed ^ mixed >> np.uint32(16)
    hashed = _hasher(0x8B51F9DD, 0x58F38DED)
    return np.stack([hashed(pool[i % _POOL]) for i in range(words)], axis=1)


def _hasher(constant: int, multiplier: int) -> Callable[[Words], Words]:
    """Returns a function that hashes words, in each call by two constants, of which the second begins the next call."""

    def hashed(words: Words) -> Words:
        nonlocal constant
        words = words ^ np.uint32(constant)
        constant = constant * multiplier % 2**32
        words *= np.uint32(constant)
        return words ^ words >> np.uint32(16)

    return hashed
