"""Draws from beta posteriors by counter-based random numbers (compiled).

Draws are made by rejection. Attempts of different arms and rounds never use the same random numbers, however many
attempts a draw takes.
"""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, inlined_kernel, inner_kernel, kernel
from fedbandit_envs.randomness.draws import Draws, normal_pair, threefry, u32


def arm_keys(seeds: Array, arms: int) -> Array:
    """Returns a key of random numbers for each arm of each agent, uint32 ``(*seeds.shape, arms, 2)``.

    An arm's key does not depend on the number of arms. The keys are made of the random numbers of round 0, which must
    not be used for anything else.

    Args:
        seeds: One seed for each agent of each replica, as given to :meth:`Policy.reset`.
        arms: Number of arms.
    """
    rows = Draws.of_policy(seeds, 0)
    keys = np.empty((*seeds.shape, arms, 2), np.uint32)
    _derive(rows.key, keys)
    return keys


@kernel
def _derive(rows, keys):
    for r in range(keys.shape[0]):
        for j in range(keys.shape[1]):
            for k in range(keys.shape[2]):
                keys[r, j, k, 0], keys[r, j, k, 1] = threefry(rows[r, j, 0], rows[r, j, 1], u32(0), u32(k))


@inlined_kernel
def open_unit(word):
    """Returns a uniform random number in the open interval (0, 1), with 31 random bits, from a random 32-bit word."""
    return np.float64(np.int32(word >> u32(1))) * 2.0**-31 + 2.0**-32


@inlined_kernel
def _first_attempt(shape, normal, word):
    """Returns a gamma variate of scale 1 if a fast test accepts the first attempt of :func:`_gamma`; else -1.

    The fast test needs no logarithm, and accepts most attempts: a uniform number below 1 - 1.7874 d z^4 also passes the
    exact test of :func:`_gamma`, for every d = shape - 1/3 >= 2/3. (At d = 2/3 it is Marsaglia and Tsang's own squeeze,
    1 - 0.0331 x^4.) ``normal`` is a standard normal number x, ``word`` a random 32-bit word, and z = x / sqrt(9 d).
    """
    d = shape - 1.0 / 3.0
    z = normal / np.sqrt(9.0 * d)
    v, square = 1.0 + z, z * z
    return d * (v * v * v) if open_unit(word) < 1.0 - 1.7874 * d * (square * square) else -1.0


@inner_kernel
def _gamma(shape, key0, key1, round_, half):
    """Returns a gamma variate of scale 1 and shape >= 1, by rejection (Marsaglia and Tsang 2000).

    For each key and round the generator gives numbered pairs of random words. Attempt i = 0, 1, ... makes a normal
    number of pair 2i and a uniform number of pair 2i + 1. Of both pairs it uses the member with index ``half`` (0 or
    1), so that two independent variates can be drawn with one key.
    """
    d = shape - 1.0 / 3.0
    pair = 0
    while True:
        x, y = threefry(key0, key1, round_, u32(pair))
        normals = normal_pair(x, y)
        words = threefry(key0, key1, round_, u32(pair + 1))
        normal = np.float64(normals[half])
        v = 1.0 + normal / np.sqrt(9.0 * d)
        if v > 0.0:
            v = v * v * v
            if np.log(open_unit(words[half])) < 0.5 * normal * normal + d * (1.0 - v + np.log(v)):
                return d * v
        pair += 2


@allocating_kernel
def draw_posteriors(key, round_, trials, successes, out):
    """Draws a number from the posterior Beta(1 + successes, 1 + failures) of each arm.

    The draw is g / (g + h) with gamma variates g and h of shapes 1 + successes and 1 + failures.

    Args:
        key: Keys of random numbers, uint32 ``(rows, arms, 2)``.
        round_: Round of each row (an agent of a replica), which selects the random numbers, ``(rows,)``.
        trials: Numbers of successes and failures together, ``(rows, arms)``.
        successes: Numbers of successes, same shape.
        out: Receives the draws, float64, same shape.
    """
    arms = out.shape[1]
    of_success, of_failure = np.empty(arms), np.empty(arms)
    # Contiguous copies of the two halves of the keys, so that the compiler can vectorise the loops over arms.
    key0, key1 = np.empty(arms, np.uint32), np.empty(arms, np.uint32)
    for r in range(out.shape[0]):
        now = u32(round_[r])
        for k in range(arms):
            key0[k], key1[k] = key[r, k, 0], key[r, k, 1]
        for k in range(arms):
            x, y = threefry(key0[k], key1[k], now, u32(0))
            first, second = normal_pair(x, y)
            x, y = threefry(key0[k], key1[k], now, u32(1))
            good = np.float64(successes[r, k])
            of_success[k] = _first_attempt(good + 1.0, np.float64(first), x)
            of_failure[k] = _first_attempt(trials[r, k] - good + 1.0, np.float64(second), y)
        for k in range(arms):
            if not of_success[k] > 0.0:
                of_success[k] = _gamma(successes[r, k] + 1.0, key0[k], key1[k], now, 0)
            if not of_failure[k] > 0.0:
                shape = trials[r, k] - successes[r, k] + 1.0
                of_failure[k] = _gamma(shape, key0[k], key1[k], now, 1)
            out[r, k] = of_success[k] / (of_success[k] + of_failure[k])
