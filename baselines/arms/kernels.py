"""Compiled parts of the arms' policies: scores of rules, the choice of arms, and draws from posteriors.

Thompson sampling draws from beta posteriors by rejection, with counter-based random numbers. Attempts of different arms
and rounds never use the same random numbers, however many attempts a draw takes.
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


@kernel
def means(pulls, sums, out):
    """Writes the mean reward of each arm."""
    for r in range(pulls.shape[0]):
        for k in range(pulls.shape[1]):
            out[r, k] = sums[r, k] / pulls[r, k]


@kernel
def upper_bounds(round_, log_horizon, per_pull, scale, pulls, sums, out):
    """Writes ``s / n + sqrt(scale ln t / n)`` for an arm with n pulls and the sum s of rewards, in round t.

    Unless ``log_horizon`` = ln T is negative, it replaces ln t; with ``per_pull`` ln(T / n) does, or 0 where n > T.
    """
    known, factor = 0, 0.0
    for r in range(pulls.shape[0]):
        if round_[r] != known:
            # Most often all rows are in the same round, so that the logarithm is computed just once.
            known = round_[r]
            factor = scale * (np.log(np.float64(known)) if log_horizon < 0.0 else log_horizon)
        for k in range(pulls.shape[1]):
            own = scale * max(log_horizon - np.log(pulls[r, k]), 0.0) if per_pull else factor
            out[r, k] = sums[r, k] / pulls[r, k] + np.sqrt(own / pulls[r, k])


@kernel
def boltzmann(pulls, sums, temperature, out):
    """Writes exp(mean / temperature) of each arm."""
    for r in range(pulls.shape[0]):
        for k in range(pulls.shape[1]):
            out[r, k] = np.exp(sums[r, k] / pulls[r, k] / temperature)


@kernel
def pursue(probability, rate, picked, active):
    """Moves the probabilities of active rows by their share ``rate`` towards 1 for the picked arm, else towards 0."""
    for r in range(picked.shape[0]):
        if active[r]:
            for k in range(picked.shape[1]):
                probability[r, k] += rate * (picked[r, k] - probability[r, k])


@inner_kernel
def _best(free, pulls, scores, r):
    """Returns the first free arm of row r that was never pulled, else the free arm with the largest score.

    Free arms are available and not picked yet in this round. Ties go to the first arm; -1 means that no arm is free.
    """
    best, most = -1, -1.0
    for k in range(free.shape[1]):
        if free[r, k]:
            if not pulls[r, k] > 0.0:
                return k
            if scores[r, k] > most:
                best, most = k, scores[r, k]
    return best


@inner_kernel
def _draw(free, scores, same, r, uniform):
    """Returns a random free arm of row r, with probability proportional to its score, or uniformly if ``same``.

    Free arms are available and not picked yet in this round. ``uniform`` is a random number in (0, 1) that decides.
    """
    total = 0.0
    for k in range(free.shape[1]):
        if free[r, k]:
            total += 1.0 if same else scores[r, k]
    last, reach, threshold = 0, 0.0, uniform * total
    for k in range(free.shape[1]):
        if free[r, k]:
            last = k
            reach += 1.0 if same else scores[r, k]
            if reach > threshold:
                break
    return last


@kernel
def pick(active, awake, pulls, scores, chance, proportional, key, round_, free, arms):
    """Picks the arms that each row (an agent of a replica) pulls; rows that do not act keep their last arms.

    Arms that were never pulled come first; then a random arm where the row explores, else arms by scores.

    Args:
        active: Rows that act, bool ``(rows,)``.
        awake: Arms that are available, bool ``(rows, all arms)``.
        pulls: Numbers of pulls, own and received, ``(rows, all arms)``.
        scores: Scores of the arms, same shape.
        chance: Probability of exploring, ``(rows,)``.
        proportional: Whether arms are drawn in proportion to scores; else those with the largest scores are picked.
        key: Keys of random numbers, uint32 ``(rows, 2)``. The generator gives a pair of 32-bit words for each slot of
            a round: the second word draws the arm, and the first word of slot 0 decides whether the row explores.
        round_: Round t, counted from 1, ``(rows,)``.
        free: Scratch, bool ``(rows, all arms)``.
        arms: Receives arms, int64 ``(rows, slots)``, with one slot for each arm that an agent pulls in a round; 0 for
            slots beyond the number of available arms.
    """
    slots = arms.shape[1]
    for r in range(arms.shape[0]):
        if not active[r]:
            continue
        draws, explores = proportional or chance[r] > 0.0, False
        if slots > 1:
            # An assignment of slices would make Numba compile its message for unlike shapes, which takes a second.
            for k in range(free.shape[1]):
                free[r, k] = awake[r, k]
        for s in range(slots):
            if draws:
                coin, word = threefry(key[r, 0], key[r, 1], u32(round_[r]), u32(s))
                if s == 0:
                    explores = open_unit(coin) <= chance[r]
            left = free if slots > 1 else awake
            arm = _best(left, pulls, scores, r)
            if (explores or proportional) and arm >= 0 and pulls[r, arm] > 0.0:
                arm = _draw(left, scores, explores, r, open_unit(word))
            arms[r, s] = max(arm, 0)
            if slots > 1 and arm >= 0:
                free[r, arm] = False
