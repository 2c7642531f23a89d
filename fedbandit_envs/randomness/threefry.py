"""Counter-based random bits: Threefry-2x32 with 13 rounds (Salmon et al.: Parallel Random Numbers, SC 2011).

Two random 32-bit words are a function of a 64-bit key and a 64-bit counter only: there is no state, and LLVM computes
as many pairs of words in parallel as the processor has vector lanes. Thirteen rounds of mixing are the fewest that pass
the statistical tests BigCrush in that paper. Threefry is no cipher: secret noise comes from
:mod:`fedbandit_envs.randomness.streams`.
"""

import numpy as np

from fedbandit_envs.basics.compiled import inlined_kernel, inner_kernel, kernel

u32 = np.uint32

_PARITY = u32(0x1BD11BDA)

_CHUNK = 32
"""Arrays of random words have a multiple of this many entries, so that they fill the vector lanes of any processor."""


def padded_size(size: int) -> int:
    """Returns ``size`` rounded up to a multiple of 32, the size that an array for ``size`` random words must have."""
    return -(-size // _CHUNK) * _CHUNK


padded = kernel(inline="always")(padded_size)
""":func:`padded_size` for calls within kernels."""


@inlined_kernel
def _mix(x, y, turn):
    # Without the casts Numba would compute sums of 32-bit integers in 64 bits, with half as many vector lanes.
    x = u32(x + y)
    return x, u32(u32(u32(y << turn) | u32(y >> u32(u32(32) - turn))) ^ x)


@inlined_kernel
def threefry(key0, key1, counter0, counter1):
    """Returns two random words, uint32, which depend on a key and a counter only.

    Args:
        key0: First word of the key, uint32.
        key1: Second word of the key, uint32.
        counter0: First word of the counter, uint32.
        counter1: Second word of the counter, uint32.
    """
    key2 = u32(u32(key0 ^ key1) ^ _PARITY)
    x, y = u32(counter0 + key0), u32(counter1 + key1)
    x, y = _mix(x, y, u32(13))
    x, y = _mix(x, y, u32(15))
    x, y = _mix(x, y, u32(26))
    x, y = _mix(x, y, u32(6))
    x, y = u32(x + key1), u32(y + u32(key2 + u32(1)))
    x, y = _mix(x, y, u32(17))
    x, y = _mix(x, y, u32(29))
    x, y = _mix(x, y, u32(16))
    x, y = _mix(x, y, u32(24))
    x, y = u32(x + key2), u32(y + u32(key0 + u32(2)))
    x, y = _mix(x, y, u32(13))
    x, y = _mix(x, y, u32(15))
    x, y = _mix(x, y, u32(26))
    x, y = _mix(x, y, u32(6))
    x, y = u32(x + key0), u32(y + u32(key1 + u32(3)))
    return _mix(x, y, u32(17))


@inner_kernel
def fill_bits(key0, key1, round_, bits):
    """Fills an array with random 32-bit words, which depend on a key and a round only.

    Args:
        key0: First word of the key, uint32.
        key1: Second word of the key, uint32.
        round_: The first word of the counter; the second word counts pairs of random words.
        bits: Output: uint32 array, of a size that :func:`padded_size` returns.
    """
    half = bits.shape[0] // 2
    for i in range(half):
        bits[i], bits[half + i] = threefry(key0, key1, round_, u32(i))
