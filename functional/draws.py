"""The package's random numbers in JAX: the same words for the same keys and counters, and numbers made of them.

Words are those of Threefry-2x32 with 13 rounds (:mod:`fedbandit_envs.randomness.draws`), to the bit. Normal and
exponential numbers are the package's polynomials in float32, in the same order. XLA likes to compute a product and a
sum in one instruction that rounds once, where the package rounds twice; :func:`_rounded` keeps the two apart, so that
these numbers are the same to the bit as well wherever quotients and square roots are rounded correctly.

All functions take the key and the round of one row (an agent of a replica); ``jax.vmap`` maps them over rows.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fedbandit_envs.randomness import draws as package

_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24), (13, 15, 26, 6), (17,))
"""Bits by which Threefry turns words; the key is added between the groups."""

_f32 = np.float32
_LARGEST = np.finfo(_f32).max


def threefry(key: Array, round_: Any, counter: Any) -> tuple[Array, Array]:
    """Returns two random words, uint32, which depend on key, round and counter only.

    Args:
        key: The row's key, uint32 ``(2,)``.
        round_: First word of the counter, an integer.
        counter: Second word of the counter, integers of any shape.
    """
    keys = key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(package._PARITY)
    x = jnp.asarray(round_).astype(jnp.uint32) + keys[0]
    y = jnp.asarray(counter).astype(jnp.uint32) + keys[1]
    x, y = jnp.broadcast_arrays(x, y)
    for group, turns in enumerate(_TURNS):
        if group:
            x, y = x + keys[group % 3], y + keys[(group + 1) % 3] + jnp.uint32(group)
        for turn in turns:
            x = x + y
            y = (y << turn | y >> (32 - turn)) ^ x
    return x, y


def _pairs(key: Array, round_: Any, size: int) -> tuple[Array, Array]:
    """Returns the pairs of words of which ``size`` numbers are made: the two halves of the package's padded arrays."""
    return threefry(key, round_, jnp.arange(package.padded_size(size) // 2, dtype=jnp.uint32))


def words(key: Array, round_: Any, size: int) -> Array:
    """Returns random 32-bit words, uint32 ``(size,)``."""
    return jnp.concatenate(_pairs(key, round_, size))[:size]


def fraction(word: Array, dtype: Any, bits: int = 32) -> Array:
    """Returns numbers uniform on (0, 1) of the leading bits of words; float32 holds 23 of them.

    Args:
        word: Random words, uint32.
        dtype: The dtype of the result.
        bits: How many of the leading bits are used.
    """
    dropped = 32 - min(bits, jnp.finfo(dtype).nmant)
    return ((word >> dropped).astype(dtype) + 0.5) * 2.0 ** (dropped - 32)


def uniform(x: Array, y: Array, dtype: Any) -> Array:
    """Returns numbers uniform on [0, 1) of pairs of words: with 53 random bits in float64, with 24 in float32."""
    if jnp.finfo(dtype).nmant < 52:
        return (x >> 8).astype(dtype) * 2.0**-24
    return (x.astype(dtype) * 2.0**21 + (y >> 11).astype(dtype)) * 2.0**-53


def _rounded(product: Array) -> Array:
    """Returns a product of float32 rounded, before something is added to it.

    No product is infinite here, which compilers do not know. (A minimum would take longer, for the sake of NaNs.)
    """
    return jnp.where(product <= _LARGEST, product, _f32(0.0))


def _polynomial(x: Array, *coefficients: Any) -> Array:
    """Returns the polynomial with these coefficients, that of the highest power first (Horner's scheme)."""
    value = jnp.broadcast_to(coefficients[0], x.shape)
    for coefficient in coefficients[1:]:
        value = _rounded(value * x) + coefficient
    return value


def _minus_log(word: Array) -> Array:
    """Returns exponential numbers of mean 1, float32: -ln u with u made of the 31 leading bits of a word."""
    number = (word >> 1).astype(jnp.int32).astype(_f32) * _f32(2.0**-31) + _f32(2.0**-32)
    whole = lax.bitcast_convert_type(number, jnp.uint32)
    # number = 2^exponent m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh(s) with s = (m - 1) / (m + 1).
    exponent = (whole - package._ROOT_HALF).astype(jnp.int32) >> 23
    m = lax.bitcast_convert_type(whole - (exponent.astype(jnp.uint32) << 23), _f32)
    s = (m - _f32(1.0)) / (m + _f32(1.0))
    series = _polynomial(s * s, package._L4, package._L3, package._L2, package._L1, _f32(2.0))
    return -(_rounded(exponent.astype(_f32) * package._LOG_2) + _rounded(s * series))


def normal_pair(x: Array, y: Array) -> tuple[Array, Array]:
    """Returns two independent standard normal numbers, float32, from two words (Box and Muller 1958)."""
    radius = jnp.sqrt(_f32(2.0) * _minus_log(x))
    part = (y << 2).astype(jnp.int32).astype(_f32) * _f32(2.0**-32)
    square = part * part
    cosine = _polynomial(square, *(getattr(package, f"_C{k}") for k in range(5, -1, -1)))
    sine = _polynomial(square, *(getattr(package, f"_S{k}") for k in range(4, -1, -1))) * part
    radius = jnp.where(y >> 31 != 0, -radius, radius)
    swapped = (y >> 30) & 1 != 0
    return radius * jnp.where(swapped, sine, cosine), radius * jnp.where(swapped, cosine, sine)


def normals(key: Array, round_: Any, size: int) -> Array:
    """Returns standard normal numbers, float32 ``(size,)``."""
    return jnp.concatenate(normal_pair(*_pairs(key, round_, size)))[:size]


def exponentials(key: Array, round_: Any, size: int) -> Array:
    """Returns exponential numbers of mean 1, float32 ``(size,)``."""
    return _minus_log(jnp.concatenate(_pairs(key, round_, size)))[:size]
