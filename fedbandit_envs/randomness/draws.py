"""Counter-based random numbers: functions of a row's key (a row is an agent of a replica) and of the round only.

The random bits are Threefry-2x32 with 13 rounds (Salmon et al.: Parallel Random Numbers, SC 2011). Two random 32-bit
words are a function of a 64-bit key and a 64-bit counter only: there is no state, and LLVM computes as many pairs of
words in parallel as the processor has vector lanes. Thirteen rounds of mixing are the fewest that pass the statistical
tests BigCrush in that paper. Threefry is no cipher: secret noise comes from :mod:`fedbandit_envs.randomness.streams`.

Normal, exponential and uniform numbers are made from the bits by sums, products, quotients and square roots, which all
processors round in the same way, so that the numbers are the same on all of them. Normal and exponential numbers have
the 24-bit precision of float32. Since they are made from 32 random bits, normal numbers are at most 6.6 and exponential
ones (of mean 1) at most 22.
"""

from collections.abc import Sequence
from math import factorial, log, pi, prod
from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import inlined_kernel, inner_kernel, kernel
from fedbandit_envs.randomness.streams import Purpose, row_keys

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


_f32 = np.float32


_LOG_2 = _f32(log(2.0))
_ROOT_HALF = u32(0x3F3504F3)  # sqrt(1/2) in float32
_L1, _L2, _L3, _L4 = (_f32(2.0 / odd) for odd in (3, 5, 7, 9))


@inlined_kernel
def _minus_log(bits):
    """Returns an exponential number with mean 1, float32: -ln u with u uniform, made of the 31 leading bits."""
    number = _f32(_f32(np.int32(bits >> u32(1))) * _f32(2.0**-31) + _f32(2.0**-32))
    # number = 2^exponent m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh(s) with s = (m - 1) / (m + 1).
    shifted = u32(number.view(u32) - _ROOT_HALF)
    exponent = np.int32(shifted) >> np.int32(23)
    m = u32(number.view(u32) - u32(u32(exponent) << u32(23))).view(_f32)
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
    radius = u32(radius.view(u32) ^ u32(y & u32(0x80000000))).view(_f32)
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
        normals: Output: float32 array, of a size that :func:`~fedbandit_envs.randomness.draws.padded` returns.
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


MOST_ROUNDS = 2**32 - 1
"""The largest number of rounds: the round is a 32-bit word of the generator's counter, so more rounds would repeat."""


class Draws(NamedTuple):
    """Random numbers for every row (agent of a replica), as a function of the row's key and round.

    There is no state: the numbers of any round can be computed again, in any order. Compiled functions take key and
    round and fill their own arrays row by row (:mod:`~fedbandit_envs.randomness.draws`,
    :mod:`~fedbandit_envs.randomness.draws`); the methods of this class return numbers for all rows at once.

    Attributes:
        key: Each row's key, uint32 ``(replicas, agents, 2)``; rows with different keys are independent.
        round: Each row's round, uint32 ``(replicas, agents)``. Draws of an
            :class:`~fedbandit_envs.randomness.draws.EpisodeRandomness` share its round counter, which advances.

    Example:
        >>> import numpy as np
        >>> seeds = np.array([[7, 8]], np.uint64)
        >>> draws = Draws.of_policy(seeds, 3)
        >>> draws.uniforms(2).shape, bool((draws.uniforms(2) == draws.uniforms(2)).all())
        ((1, 2, 2), True)
    """

    key: Array
    round: Array

    @classmethod
    def of_policy(cls, seeds: Array, round_: Array | int) -> "Draws":
        """Returns the draws of a randomised policy in a round.

        Args:
            seeds: Each row's seed, uint64 ``(replicas, agents)``, as given to ``reset`` of the policy.
            round_: The round: one integer for all rows, or ``(replicas, agents, 1)`` as in observations.
        """
        key = np.ascontiguousarray(seeds).view(np.uint32).reshape(*seeds.shape, 2)
        round_ = np.broadcast_to(round_, (*seeds.shape, 1))[..., 0]
        return cls(key, np.ascontiguousarray(round_, np.uint32))

    def uniforms(self, *shape: int) -> Array:
        """Returns this round's uniform numbers on [0, 1), float64 ``(replicas, agents, *shape)``."""
        drawn = np.empty((*self.round.shape, prod(shape)))
        _uniforms(self.key, self.round, drawn)
        return drawn.reshape(*self.round.shape, *shape)

    def normals(self, *shape: int) -> Array:
        """Returns this round's standard normal numbers, float64 ``(replicas, agents, *shape)``."""
        drawn = np.empty((*self.round.shape, prod(shape)))
        _normals(self.key, self.round, np.empty(padded_size(drawn.shape[2]), np.float32), drawn)
        return drawn.reshape(*self.round.shape, *shape)


@kernel
def _uniforms(key, round_, drawn):
    for r in range(drawn.shape[0]):
        for j in range(drawn.shape[1]):
            for i in range(drawn.shape[2]):
                x, y = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(i))
                drawn[r, j, i] = uniform(x, y)


@kernel
def _normals(key, round_, scratch, drawn):
    for r in range(drawn.shape[0]):
        for j in range(drawn.shape[1]):
            fill_normals(key[r, j, 0], key[r, j, 1], round_[r, j], scratch)
            for i in range(drawn.shape[2]):
                drawn[r, j, i] = scratch[i]


class EpisodeRandomness:
    """The random numbers of an episode's rounds, for all replicas and agents.

    The random numbers of a round do not depend on actions, so that policies under one seed share common random numbers;
    the numbers of an agent do not depend on how many other agents there are.

    Attributes:
        seeds: The seed of each replica.
        round: Each agent's round counter, uint32 ``(replicas, agents)``. Where not all agents act in every round, it
            counts the rounds in which the agent acts.
    """

    def __init__(self, seeds: Sequence[int], agents: int, own: bool) -> None:
        """Starts in round 0.

        Args:
            seeds: The seed of each replica.
            agents: Number of agents in each replica.
            own: Whether each agent's round counter counts only the rounds in which the agent acts.
        """
        self.seeds = seeds
        self.round = np.zeros((len(seeds), agents), np.uint32)
        self._own = own

    def draws(self, purpose: Purpose, *key: int) -> Draws:
        """Returns the random draws for one purpose; they advance with the episode's round counters.

        Args:
            purpose: The purpose of the draws.
            *key: Further non-negative integers that name a sub-stream of the purpose.
        """
        return Draws(row_keys(self.seeds, self.round.shape[1], purpose, *key), self.round)

    def advance(self, active: Array) -> None:
        """Increases the round counters after a round.

        Args:
            active: Whether each agent has acted in the round, bool ``(replicas, agents)``.
        """
        np.add(self.round, active if self._own else 1, out=self.round, casting="unsafe")
