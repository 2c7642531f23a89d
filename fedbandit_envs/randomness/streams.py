"""Random streams: for each replica and purpose (such as outcomes or noise) a generator or a key of its own.

A stream depends on ``(seed, purpose)`` only. So a replica has the same random numbers alone and in a batch of a
hundred, two policies with one seed share common random numbers, and adding a purpose never changes the streams of
others.
"""

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_integer


class Purpose(IntEnum):
    """The purposes of random streams.

    The streams depend on these numbers: new purposes must be appended, and numbers never changed.
    """

    MARKET = 0
    OUTCOME = 1
    DRIFT = 2
    POLICY = 3
    NOISE = 4
    CHANNEL = 5
    PARAMETER = 6
    CONTEXT = 7
    PARTICIPATION = 8
    LIE = 9
    ARM = 10
    REPORT = 11
    POOL = 12


def stream(seed: int, purpose: Purpose, *key: int) -> np.random.Generator:
    """Returns the random generator (SFC64) of one replica and purpose.

    Args:
        seed: The replica's seed, a non-negative integer of any size.
        purpose: The purpose of the draws.
        *key: Further non-negative integers that name a sub-stream of the purpose.
    """
    sequence = np.random.SeedSequence(_entropy([_name(seed, purpose, *key)])[0])
    return np.random.Generator(np.random.SFC64(sequence))


def _name(*parts: int) -> str:
    return repr([int(part) for part in parts])


def _entropy(names: Sequence[str]) -> Array:
    """Returns the entropy of seed sequences, uint32 ``(names, 4)``: the hash of each name.

    NumPy's seed sequences can be inverted: without the hash, two policy seeds would reveal an episode's seed of up to
    128 bits, and with it all later random numbers.
    """
    hashes = b"".join(blake2b(name.encode(), digest_size=16).digest() for name in names)
    return np.frombuffer(hashes, "<u4").reshape(-1, 4)


Entropy = int | Sequence[int]
"""One or several non-negative integers of any size, from which noise is seeded."""

# At a million guesses in a second, a search through seeds of this many bits takes half a million years.
_SECRET_BITS = 64


def is_secret(entropy: Entropy | None) -> bool:
    """Returns whether a noise seed has at least 64 bits, so that it cannot be found by trying all; False for None."""
    return entropy is not None and sum(word.bit_length() for word in _words(entropy)) >= _SECRET_BITS


def _words(entropy: Entropy) -> list[int]:
    return [int(entropy)] if isinstance(entropy, int | np.integer) else [int(word) for word in entropy]


def noise_streams(
    seeds: Sequence[int], num_agents: int, entropy: Entropy | None, episode: int
) -> list[list[np.random.Generator]]:
    """Returns a generator of noise for every agent of every replica.

    The noise of one agent reveals nothing about the noise of another.

    Args:
        seeds: Seeds of the replicas, integers of Python.
        num_agents: Number of agents in each replica.
        entropy: A seed for the noise, secret if claims are to hold against everyone; the noise then differs between
            episodes, and between replicas with the same seed. With None the noise follows from the replicas' seeds, so
            that runs can be repeated.
        episode: Number of the episode; used only if ``entropy`` is given.
    """
    noise = int(Purpose.NOISE)
    if entropy is None:
        names = [f"{seed}, {noise}" for seed in seeds]
    else:
        words = _words(entropy)
        # The number of words comes first, so that different pairs of entropy and seed never give the same sequence. The
        # last number tells replicas with the same seed apart.
        names, earlier = [], Counter[int]()
        for seed in seeds:
            names.append(f"{[len(words), *words, seed]}, {noise}, {episode}, {earlier[seed]}")
            earlier[seed] += 1
    # Without entropy these are the streams of the seed and purpose, with the agent's number as the key.
    entropies = _entropy([f"[{name}, {agent}]" for name in names for agent in range(num_agents)])
    known = cast(Any, _KnownStates(generate_states(entropies, 6).view(np.uint64)))
    return [[np.random.Generator(np.random.SFC64(known)) for _ in range(num_agents)] for _ in names]


class _KnownStates(ISeedSequence):
    """Seed sequences, taken one after the other, whose words have been generated already."""

    def __init__(self, words: Array) -> None:
        self._words = iter(words)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Array:
        """Returns the words of the next one."""
        return next(self._words)


def generate_states(entropy: Array, words: int) -> Array:
    """Returns what ``SeedSequence(entropy).generate_state(words)`` returns, for many sequences.

    Args:
        entropy: The entropy of each sequence, 128 bits with the lowest word first, uint32 ``(sequences, 4)``.
        words: Number of words of each sequence.

    Returns:
        Their words, uint32 ``(sequences, words)``.
    """
    if len(entropy) < 12:
        # Of few sequences NumPy makes each sooner than these steps are taken.
        return np.array([np.random.SeedSequence(each).generate_state(words) for each in entropy], np.uint32)
    # Two constants for each word that is hashed; the second is the first of the next word.
    constants = pairwise(np.cumprod([0x43B0D7E5, *[0x931E8875] * 16], dtype=np.uint32))
    pool = [_hashed(word, *next(constants)) for word in entropy.T]
    for source in range(4):
        for target in range(4):
            if target != source:
                mixed = pool[target] * np.uint32(0xCA01F9DD)
                mixed -= _hashed(pool[source], *next(constants)) * np.uint32(0x4973F715)
                pool[target] = mixed ^ mixed >> np.uint32(16)
    last = np.cumprod([0x8B51F9DD, *[0x58F38DED] * words], dtype=np.uint32)
    return _hashed(np.stack(pool, axis=1).take(np.arange(words) % 4, axis=1), last[:-1], last[1:])


def _hashed(words: Array, first: Array, second: Array) -> Array:
    words = (words ^ first) * second
    return words ^ words >> np.uint32(16)


def noise_names(seeds: Sequence[int], entropy: Entropy | None, episode: int) -> list[str]:
    """Returns names of the noise that :func:`noise_streams` draws in each replica: the same name, the same noise.

    A noise seed appears in a name as a hash, from which it cannot be found if it is secret. The arguments are those of
    :func:`noise_streams`.
    """
    if entropy is None:
        return [f"seed {seed}" for seed in seeds]
    digest = blake2b(repr(_words(entropy)).encode(), digest_size=16).hexdigest()
    return [f"noise_seed of hash {digest}, episode {episode}, seed {seed}" for seed in seeds]


def row_seeds(seeds: Sequence[int], num_agents: int) -> npt.NDArray[np.uint64]:
    """Returns the policy's seed for every row (agent of a replica), uint64 ``(replicas, agents)``.

    The seed of agent j depends on the replica's seed and on j, not on the number of agents. So a randomised policy
    draws the same numbers for an agent whether it acts for this agent only or for all of them.
    """
    return row_keys(seeds, num_agents, Purpose.POLICY).view(np.uint64)[..., 0]


def row_keys(seeds: Sequence[int], num_agents: int, purpose: Purpose, *key: int) -> npt.NDArray[np.uint32]:
    """Returns the key of every row (agent of a replica) for counter-based draws, uint32 ``(replicas, agents, 2)``.

    The key of agent j depends on the replica's seed, the purpose and j, not on the number of agents.

    Args:
        seeds: Seeds of the replicas.
        num_agents: Number of agents in each replica.
        purpose: The purpose of the draws.
        *key: Further non-negative integers that name a sub-stream of the purpose.
    """
    entropy = _entropy([_name(seed, purpose, *key) for seed in seeds])
    return generate_states(entropy, 2 * num_agents).reshape(-1, num_agents, 2)


class EpisodeSeeds:
    """The seeds of successive episodes, by the rules of ``reset(seed=...)`` in Gymnasium and PettingZoo.

    If ``reset`` is given a seed, it is the episode's seed. Otherwise the episode's seed is derived from the last seed
    given, or from the operating system's entropy if no seed was given before.

    Example:
        >>> one, other = EpisodeSeeds(), EpisodeSeeds()
        >>> [one.next(7), one.next()] == [other.next(7), other.next()]
        True
    """

    def __init__(self) -> None:
        """Starts with no seed given so far."""
        self._generator: np.random.Generator | None = None

    def next(self, seed: int | None = None) -> int:
        """Returns the seed of the next episode.

        Args:
            seed: The seed given to ``reset``, a non-negative integer of Python or NumPy; None derives the next one.

        Raises:
            TypeError: The seed is no integer.
            ValueError: It is negative.
        """
        if seed is not None:
            seed = require_integer("seed", seed, 0)
        if seed is not None or self._generator is None:
            self._generator = np.random.default_rng(seed)
        return seed if seed is not None else int(self._generator.integers(2**63))


def next_episodes(kept: Sequence[EpisodeSeeds], seeds: Sequence[int | None]) -> list[int]:
    """Returns the seed of each replica's next episode; see :meth:`EpisodeSeeds.next`."""
    return [each.next(seed) for each, seed in zip(kept, seeds, strict=True)]
