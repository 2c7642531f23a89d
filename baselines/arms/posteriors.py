"""Draws from beta posteriors by counter-based random numbers, however many attempts a draw takes (compiled)."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.randomness.draws import Draws
from fedbandit_envs.randomness.threefry import threefry, u32
from fedbandit_envs.randomness.variates import normal_pair


def arm_keys(seeds: Array, arms: int) -> Array:
    """Returns a key of random numbers for each arm of each row, uint32 ``(*seeds.shape, arms, 2)``.

    An arm's key does not depend on the number of arms. The keys use up the random numbers of round 0 of each row.

    Args:
        seeds: One seed a row, as given to :meth:`Policy.reset`.
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


@kernel(inline="always")
def open_unit(word):
    """Returns a uniform number in (0, 1) with 31 random bits, float64, from a 32-bit word."""
    return np.float64(np.int32(word >> u32(1))) * 2.0**-31 + 2.0**-32


@kernel(inline="always")
def _first_attempt(shape, normal, word):
    """Returns :func:`_gamma`'s number where its first attempt is accepted without a logarithm, as most are; else -1.

    An attempt with a uniform number below 1 - 1.7874 d z^4 passes the test with logarithms, for every d >= 2/3 (at 2/3
    it is Marsaglia and Tsang's own squeeze, 1 - 0.0331 x^4).
    """
    d = shape - 1.0 / 3.0
    z = normal / np.sqrt(9.0 * d)
    v, square = 1.0 + z, z * z
    return d * (v * v * v) if open_unit(word) < 1.0 - 1.7874 * d * (square * square) else -1.0


@kernel
def _gamma(shape, key0, key1, round_, half):
    """Returns a gamma variate of scale 1 and shape >= 1 (Marsaglia and Tsang 2000).

    Attempt i uses one half of the pair of words 2i for a normal number and of the pair 2i + 1 for a uniform one; a
    second variate uses the other halves.
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


@kernel
def draw_posteriors(key, round_, trials, successes, out):
    """Draws from Beta(1 + successes, 1 + failures), as the share of one of two gamma variates.

    Args:
        key: Keys of random numbers, uint32 ``(rows, arms, 2)``.
        round_: ``(rows,)``.
        trials: ``(rows, arms)``.
        successes: Same shape.
        out: Receives the draws, float64, same shape.
    """
    arms = out.shape[1]
    of_success, of_failure = np.empty(arms), np.empty(arms)
    # Contiguous copies of the keys, so that the loops below are vectorised.
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
