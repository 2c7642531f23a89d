"""Normal, exponential and uniform random numbers from random bits, in arithmetic that LLVM can vectorise.

Only sums, products, quotients and square roots are used, which all processors round in the same way, so that the
numbers are the same on all of them. Normal and exponential numbers have the 24-bit precision of float32. Since they are
made from 32 random bits, normal numbers are at most 6.6 and exponential ones (of mean 1) at most 22.
"""

from math import factorial, log, pi

import numpy as np

from fedbandit_envs.basics.compiled import inlined_kernel, inner_kernel, kernel
from fedbandit_envs.basics.llvm_intrinsics import from_bits, to_bits
from fedbandit_envs.randomness.threefry import threefry, u32

_f32 = np.float32


_LOG_2 = _f32(log(2.0))
_ROOT_HALF = u32(0x3F3504F3)  # sqrt(1/2) in float32
_L1, _L2, _L3, _L4 = (_f32(2.0 / odd) for odd in (3, 5, 7, 9))


@inlined_kernel
def _minus_log(bits):
    """Returns an exponential number with mean 1, float32: -ln u with u uniform, made of the 31 leading bits."""
    number = _f32(_f32(np.int32(bits >> u32(1))) * _f32(2.0**-31) + _f32(2.0**-32))
    # number = 2^exponent m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh(s) with s = (m - 1) / (m + 1).
    shifted = u32(to_bits(number) - _ROOT_HALF)
    exponent = np.int32(shifted) >> np.int32(23)
    m = from_bits(u32(to_bits(number) - u32(u32(exponent) << u32(23))))
    s = _f32(_f32(m - _f32(1.0)) / _f32(m + _f32(1.0)))
    z = _f32(s * s)
    series = _f32(_L4 * z + _L3)
    series = _f32(series * z + _L2)
    series = _f32(series * z + _L1)
    series = _f32(series * z + _f32(2.0))
    return _f32(-_f32(_f32(exponent) * _LOG_2 + _f32(s * series)))


# Coefficients of the Taylor series of cos(pi/2 t) and sin(pi/2 t), used for t in [-1/2, 1/2].
_C0, _C1, _C2, _C3, _C4, _C5 = (_f32((-1) ** k * (pi / 2) ** (2 * k) / factorial(2 * k)) for k in range(6))
_S0, _S1, _S2, _S3, _S4 = (_f32((-1) ** k * (pi / 2) ** (2 * k + 1) / factorial(2 * k + 1)) for k in range(5))


@inlined_kernel
def normal_pair(x, y):
    """Returns two independent standard normal numbers, float32, from two random 32-bit words (Box and Muller 1958)."""
    radius = _f32(np.sqrt(_f32(_f32(2.0) * _minus_log(x))))
    # The direction is first drawn within 45 degrees of the first axis. One more random bit reverses it, and another
    # swaps the axes, so that all directions are equally likely.
    part = _f32(_f32(np.int32(u32(y << u32(2)))) * _f32(2.0**-32))
    z = _f32(part * part)
    cosine = _f32(_C5 * z + _C4)
    cosine = _f32(cosine * z + _C3)
    cosine = _f32(cosine * z + _C2)
    cosine = _f32(cosine * z + _C1)
    cosine = _f32(cosine * z + _C0)
    sine = _f32(_S4 * z + _S3)
    sine = _f32(sine * z + _S2)
    sine = _f32(sine * z + _S1)
    sine = _f32(_f32(sine * z + _S0) * part)
    radius = from_bits(u32(to_bits(radius) ^ u32(y & u32(0x80000000))))
    swapped = (y & u32(0x40000000)) != u32(0)
    return _f32(radius * (sine if swapped else cosine)), _f32(radius * (cosine if swapped else sine))


@kernel(inline="always")
def uniform(x, y):
    """Returns a float64 number uniform on [0, 1), with 53 random bits, from two random 32-bit words."""
    return np.float64(np.int64((np.uint64(x) << np.uint64(21)) ^ np.uint64(y >> u32(11)))) * 2.0**-53


@inner_kernel
def fill_normals(key0, key1, round_, normals):
    """Fills an array with standard normal numbers, which depend on a key and a round only.

    Args:
        key0: First 32-bit word of the key.
        key1: Second word of the key.
        round_: The first word of Threefry's counter; the second word counts pairs of numbers.
        normals: Output: float32 array, of a size that :func:`~fedbandit_envs.randomness.threefry.padded` returns.
    """
    half = normals.shape[0] // 2
    for i in range(half):
        x, y = threefry(key0, key1, round_, u32(i))
        normals[i], normals[half + i] = normal_pair(x, y)


@inner_kernel
def fill_exponentials(key0, key1, round_, exponentials):
    """Fills a float32 array with exponential numbers of mean 1, as :func:`fill_normals` does with normal ones."""
    half = exponentials.shape[0] // 2
    for i in range(half):
        x, y = threefry(key0, key1, round_, u32(i))
        exponentials[i], exponentials[half + i] = _minus_log(x), _minus_log(y)


@inner_kernel
def fill_uniforms(key0, key1, round_, uniforms):
    """Fills a float64 array of any size with numbers uniform on [0, 1); key and counter as in :func:`fill_normals`."""
    for i in range(uniforms.shape[0]):
        x, y = threefry(key0, key1, round_, u32(i))
        uniforms[i] = uniform(x, y)
