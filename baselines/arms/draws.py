"""Luck of policies inside of kernels: numpy's SFC64 by row, and what is drawn from it.

A state is four words of uint64, numpy's own; a row's draws follow from its state alone, however many are taken, so
that rows stay rows where what is drawn takes a random number of words.
"""

import numpy as np

from fedbandit_envs.compiled import kernel
from fedbandit_envs.federation import Array


def fresh_states(seed: int, number: int) -> Array:
    """Returns states of which no word was drawn yet, uint64 ``(number, 4)``.

    Args:
        seed: A non-negative integer of any size.
        number: How many; the first do not depend on it.
    """
    fresh = np.ones((number, 4), np.uint64)
    # Three words, and a counter that starts at 1.
    fresh[:, :3] = np.random.SeedSequence(seed).generate_state(3 * number, np.uint64).reshape(number, 3)
    return fresh


@kernel(fastmath=False)
def next_word(state):
    """Returns the next 64 bits of a state, uint64 ``(4,)``, and moves it on (SFC64, Doty-Humphrey)."""
    a, b, c, count = state[0], state[1], state[2], state[3]
    word = a + b + count
    state[3] = count + np.uint64(1)
    state[0] = b ^ (b >> np.uint64(11))
    state[1] = c + (c << np.uint64(3))
    state[2] = ((c << np.uint64(24)) | (c >> np.uint64(40))) + word
    return word


@kernel(fastmath=False)
def uniform(state):
    """Returns a number uniform on [0, 1), of 53 bits."""
    return np.float64(next_word(state) >> np.uint64(11)) * 2.0**-53


@kernel(fastmath=False)
def normal(state):
    """Returns a standard normal number (Marsaglia's polar method, one of its two)."""
    while True:
        u, v = 2.0 * uniform(state) - 1.0, 2.0 * uniform(state) - 1.0
        square = u * u + v * v
        if 0.0 < square < 1.0:
            return u * np.sqrt(-2.0 * np.log(square) / square)


@kernel(fastmath=False)
def gamma(shape, state):
    """Returns a gamma number of scale 1 and a shape of at least 1 (Marsaglia and Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = uniform(state)
        # The squeeze spares most of the logarithms.
        if u < 1.0 - 0.0331 * x * x * x * x or np.log(u) < 0.5 * x * x + d * (1.0 - v + np.log(v)):
            return d * v


@kernel(fastmath=False)
def beta(a, b, state):
    """Returns a beta number, both shapes at least 1: of two gamma numbers, the first one's part."""
    first = gamma(a, state)
    return first / (first + gamma(b, state))
