"""Random streams by name: one generator or key for each replica and purpose.

Streams follow from ``(seed, purpose)`` alone. So a replica has the same random numbers alone and in a batch of a
hundred, two policies with one seed share common random numbers, and a new purpose never changes the stream of another.
"""

from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from fedbandit_envs.basics.checks import require_integer


class Purpose(IntEnum):
    """The purposes of random streams. The numbers fix the streams: append new ones, never change one."""

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


def stream(seed: int, purpose: Purpose, *key: int) -> np.random.Generator:
    """Returns the random generator (SFC64) of one replica and purpose.

    Args:
        seed: The replica's seed, a non-negative integer of any size.
        purpose: The purpose of the draws.
        *key: Further non-negative integers that name a sub-stream of the purpose.
    """
    return np.random.Generator(np.random.SFC64(_sequence(seed, purpose, *key)))


def _sequence(*name: Any) -> np.random.SeedSequence:
    """Returns the seed sequence of a seed and a purpose, hashed so that its numbers do not reveal the seed.

    NumPy's sequences can be inverted: without the hash, two policy seeds would reveal the episode's seed of up to 128
    bits, and with it all later random numbers.
    """
    text = repr([[int(word) for word in part] if isinstance(part, list) else int(part) for part in name])
    return np.random.SeedSequence(int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "little"))


Entropy = int | Sequence[int]
"""Non-negative integers of any size from which a seed is made."""

# At a million guesses a second a search through this many bits takes half a million years.
_SECRET_BITS = 64


def is_secret(entropy: Entropy | None) -> bool:
    """Returns whether entropy is too large to be searched; None (noise follows from the episode's seed) never is."""
    words = [entropy] if isinstance(entropy, int | np.integer) else entropy or []
    return sum(int(word).bit_length() for word in words) >= _SECRET_BITS


def noise_streams(
    seeds: Sequence[int], num_agents: int, entropy: Entropy | None, episode: int
) -> list[list[np.random.Generator]]:
    """Returns a noise generator for every row; the noise of one agent reveals nothing about that of another.

    Args:
        seeds: Seeds of the replicas.
        num_agents: Number of agents in each.
        entropy: With None noise follows from the replicas' seeds, so that runs can be repeated. Otherwise it follows
            from the entropy and differs between episodes and between replicas with the same seed.
        episode: Number of the episode; used only with entropy.
    """
    if entropy is None:
        return [[stream(seed, Purpose.NOISE, agent) for agent in range(num_agents)] for seed in seeds]
    words = [int(entropy)] if isinstance(entropy, int | np.integer) else [int(word) for word in entropy]
    earlier: dict[int, int] = {}
    rows = []
    for seed in seeds:
        twin = earlier.get(seed, 0)
        earlier[seed] = twin + 1
        # With the number of words in front, different entropies and seeds never give the same sequence.
        sequence = [len(words), *words, seed]
        rows.append(
            [
                np.random.Generator(np.random.SFC64(_sequence(sequence, Purpose.NOISE, episode, twin, agent)))
                for agent in range(num_agents)
            ]
        )
    return rows


def row_seeds(seeds: Sequence[int], num_agents: int) -> npt.NDArray[np.uint64]:
    """Returns the policy seed of every row, uint64 ``(replicas, agents)``.

    The seed of agent j depends on the replica's seed and on j, not on how many agents there are, so that a
    randomised policy draws the same for an agent fed alone.
    """
    return row_keys(seeds, num_agents, Purpose.POLICY).view(np.uint64)[..., 0]


def row_keys(seeds: Sequence[int], num_agents: int, purpose: Purpose, *key: int) -> npt.NDArray[np.uint32]:
    """Returns the key of every row for counter-based draws, uint32 ``(replicas, agents, 2)``.

    The key of agent j depends on the replica's seed, the purpose and j, not on how many agents there are.

    Args:
        seeds: Seeds of the replicas.
        num_agents: Number of agents in each.
        purpose: The purpose of the draws.
        *key: Further non-negative integers that name a sub-stream of the purpose.
    """
    sequences = (_sequence(seed, purpose, *key) for seed in seeds)
    return np.stack(
        [sequence.generate_state(2 * num_agents).reshape(num_agents, 2) for sequence in sequences]
    )


class EpisodeSeeds:
    """The seeds of successive episodes, by the rules of ``reset(seed=...)`` in Gymnasium and PettingZoo.

    A given seed is the episode's seed. The seeds of later episodes without one follow from the last seed given, or from
    the operating system's entropy if there was none.

    Example:
        >>> one, other = EpisodeSeeds(), EpisodeSeeds()
        >>> [one.next(7), one.next()] == [other.next(7), other.next()]
        True
    """

    def __init__(self) -> None:
        """Starts without a seed."""
        self._generator: np.random.Generator | None = None

    def next(self, seed: int | None = None) -> int:
        """Returns the seed of the next episode.

        Args:
            seed: A non-negative integer, of numpy's or Python's; or None to go on.

        Raises:
            TypeError: The seed is no integer.
            ValueError: It is negative.
        """
        if seed is not None:
            require_integer("seed", seed, 0)
            seed = int(seed)
        if seed is not None or self._generator is None:
            self._generator = np.random.default_rng(seed)
        return seed if seed is not None else int(self._generator.integers(2**63))
