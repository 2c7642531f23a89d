"""Counter-based random bits: Threefry-2x32 with 13 rounds (Salmon et al.: Parallel Random Numbers, SC 2011).

A pair of 32-bit words is a function of a 64-bit key and a 64-bit counter alone: there is no state, and LLVM computes as
many pairs in parallel as the processor has vector lanes. Thirteen rounds are the fewest that pass BigCrush in that
paper. It is no cipher: secret noise comes from :mod:`fedbandit_envs.randomness.streams`.
"""

import numpy as np

from fedbandit_envs.basics.compiled import kernel

u32 = np.uint32

_PARITY = u32(0x1BD11BDA)

_CHUNK = 32
"""Sizes of arrays of bits are multiples of this many words, which fills the vector lanes of any processor."""


@kernel
def padded(size):
    """Returns the smallest allowed size of an array of bits for ``size`` words."""
    return -(-size // _CHUNK) * _CHUNK


@kernel(inline="always")
def _mix(x, y, turn):
    # Sums of 32-bit integers would be 64 bits wide without the casts, and lanes half as many.
    x = u32(x + y)
    return x, u32(u32(u32(y << u32(turn)) | u32(y >> u32(32 - turn))) ^ x)


@kernel(inline="always")
def threefry(key0, key1, counter0, counter1):
    """Returns the pair of words, uint32, of a key and a counter.

    Args:
        key0: First word of the key, uint32.
        key1: Second word.
        counter0: First word of the counter, uint32.
        counter1: Second word.
    """
    key2 = u32(u32(key0 ^ key1) ^ _PARITY)
    x, y = u32(counter0 + key0), u32(counter1 + key1)
    x, y = _mix(x, y, 13)
    x, y = _mix(x, y, 15)
    x, y = _mix(x, y, 26)
    x, y = _mix(x, y, 6)
    x, y = u32(x + key1), u32(y + u32(key2 + u32(1)))
    x, y = _mix(x, y, 17)
    x, y = _mix(x, y, 29)
    x, y = _mix(x, y, 16)
    x, y = _mix(x, y, 24)
    x, y = u32(x + key2), u32(y + u32(key0 + u32(2)))
    x, y = _mix(x, y, 13)
    x, y = _mix(x, y, 15)
    x, y = _mix(x, y, 26)
    x, y = _mix(x, y, 6)
    x, y = u32(x + key0), u32(y + u32(key1 + u32(3)))
    return _mix(x, y, 17)


@kernel
def fill_bits(key0, key1, round_, bits):
    """Fills an array with random words.

    Args:
        key0: First word of the key.
        key1: Second word.
        round_: The counter's first word; its second counts pairs.
        bits: Output: uint32 words; its size must come from :func:`padded`.
    """
    half = bits.shape[0] // 2
    for i in range(half):
        bits[i], bits[half + i] = threefry(key0, key1, round_, u32(i))
