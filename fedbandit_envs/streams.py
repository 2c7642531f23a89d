"""Named random streams: one generator a replica and purpose, drawn in blocks.

Streams are derived from ``(seed, purpose)`` alone. So a replica meets the same luck alone or in a batch of a
hundred, two policies under one seed meet the same luck, and a new consumer never shifts another's stream.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fedbandit_envs.checks import require_integer


class Purpose(IntEnum):
    """What a stream is for. Numbers are part of the reproducibility contract: only ever append."""

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
    """Returns the generator (SFC64) of one replica for one purpose.

    Args:
        seed: The replica's seed, a non-negative integer of any size.
        purpose: What the draws are for.
        *key: Further non-negative integers that name a sub-stream of the purpose.
    """
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(purpose, *key))))


Entropy = int | Sequence[int]
"""Non-negative integers of any size, from which a seed is made."""

# At a million guesses a second a search of so many bits takes half a million years.
_SECRET_BITS = 64


def is_secret(entropy: Entropy | None) -> bool:
    """Says whether there is too much entropy to search; what follows from an episode's seed (None) never is."""
    words = [entropy] if isinstance(entropy, int | np.integer) else entropy or []
    return sum(int(word).bit_length() for word in words) >= _SECRET_BITS


def noise_streams(
    seeds: Sequence[int], num_agents: int, entropy: Entropy | None, episode: int
) -> list[list[np.random.Generator]]:
    """Returns a generator of noise for every row: who knows one agent's noise knows no other's.

    Args:
        seeds: Of the replicas.
        num_agents: Number of agents in each.
        entropy: None lets noise follow from the replicas' seeds, so that runs repeat. Else noise follows from this, and
            is never the same twice, neither in two episodes nor in two replicas of one seed.
        episode: Number of the episode, which matters where there is entropy.
    """
    if entropy is None:
        return [[stream(seed, Purpose.NOISE, agent) for agent in range(num_agents)] for seed in seeds]
    words = [int(entropy)] if isinstance(entropy, int | np.integer) else [int(word) for word in entropy]
    earlier: dict[int, int] = {}
    rows = []
    for seed in seeds:
        twin = earlier.get(seed, 0)
        earlier[seed] = twin + 1
        # The number of words tells entropy and seed apart, whatever their sizes.
        sequence = [len(words), *words, seed]
        rows.append(
            [
                np.random.Generator(
                    np.random.SFC64(
                        np.random.SeedSequence(sequence, spawn_key=(Purpose.NOISE, episode, twin, agent))
                    )
                )
                for agent in range(num_agents)
            ]
        )
    return rows


def row_seeds(seeds: Sequence[int], num_agents: int) -> npt.NDArray[np.uint64]:
    """Returns one policy seed a row, shape ``(replicas, agents)``.

    The seed of agent j depends on the replica's seed and on j, not on how many agents there are, so that a
    randomised policy draws the same for an agent fed alone.
    """
    sequences = (np.random.SeedSequence(seed, spawn_key=(Purpose.POLICY,)) for seed in seeds)
    return np.stack([sequence.generate_state(num_agents, np.uint64) for sequence in sequences])


Fill = Callable[[np.random.Generator, npt.NDArray[Any]], None]
"""Fills an array with draws."""


def uniform_31_bits(generator: np.random.Generator, out: npt.NDArray[Any]) -> None:
    """Fills an int32 array of even size with integers uniform on ``0 .. 2**31 - 1``."""
    words = generator.bit_generator.random_raw(out.size // 2).view(np.uint32)
    np.right_shift(words, 1, out=out.reshape(-1).view(np.uint32))


def uniform(generator: np.random.Generator, out: npt.NDArray[Any]) -> None:
    """Fills a float64 array with numbers uniform on [0, 1)."""
    generator.random(out=out)


def standard_normal(generator: np.random.Generator, out: npt.NDArray[Any]) -> None:
    """Fills a float64 array with standard normal numbers."""
    generator.standard_normal(out=out)


def standard_exponential(generator: np.random.Generator, out: npt.NDArray[Any]) -> None:
    """Fills a float64 array with exponential numbers of mean 1."""
    generator.standard_exponential(out=out)


class Blocks:
    """Draws for every replica, made ahead in blocks of rounds.

    A round's draws have a fixed shape whatever the agents do. ``block`` holds the current block, shape
    ``(replicas, rounds, *shape)``; :meth:`next_round` says which of its rounds to read. Kernels take the block whole,
    since a slice of it would not be contiguous.
    """

    _TARGET_SIZE_PER_REPLICA = 1 << 13

    def __init__(
        self,
        generators: Sequence[np.random.Generator],
        shape: tuple[int, ...],
        fill: Fill,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        """Prepares empty blocks.

        Args:
            generators: One generator a replica.
            shape: Shape of one round's draws for one replica.
            fill: What is drawn.
            dtype: Of the draws.
        """
        self._generators = list(generators)
        self._fill = fill
        # Even, so that a block of 32-bit draws is a whole number of the generator's 64-bit words.
        rounds = 2 * max(1, min(32, self._TARGET_SIZE_PER_REPLICA // max(prod(shape), 1)))
        self.block = np.empty((len(self._generators), rounds, *shape), dtype)
        self._position = rounds

    def next_round(self) -> int:
        """Advances by one round, drawing a new block where the old one is used up.

        Returns:
            The round's index into ``block``'s second axis.
        """
        if self._position == self.block.shape[1]:
            for row, generator in zip(self.block, self._generators, strict=True):
                self._fill(generator, row)
            self._position = 0
        self._position += 1
        return self._position - 1


class EpisodeSeeds:
    """Seeds of successive episodes, as the ``reset(seed=...)`` of Gymnasium and PettingZoo has them.

    A given seed is the episode's own; episodes reset without one follow from the last seed given, or from the
    operating system's entropy where none ever was.
    """

    def __init__(self) -> None:
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
