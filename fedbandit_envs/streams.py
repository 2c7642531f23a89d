"""Named random streams: a key or a generator a replica and purpose.

Streams are derived from ``(seed, purpose)`` alone. So a replica meets the same luck alone or in a batch of a
hundred, two policies under one seed meet the same luck, and a new consumer never shifts another's stream.
"""

from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b
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
    return np.random.Generator(np.random.SFC64(_sequence(seed, purpose, *key)))


def _sequence(*name: Any) -> np.random.SeedSequence:
    """Returns the seed sequence of a seed and what it is for, from whose numbers nobody finds the seed.

    NumPy's sequences can be run backwards: who has two policies' seeds would compute the episode's, of up to 128 bits,
    and with it all luck to come. A hash stands between.
    """
    text = repr([[int(word) for word in part] if isinstance(part, list) else int(part) for part in name])
    return np.random.SeedSequence(int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "little"))


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
                np.random.Generator(np.random.SFC64(_sequence(sequence, Purpose.NOISE, episode, twin, agent)))
                for agent in range(num_agents)
            ]
        )
    return rows


def row_seeds(seeds: Sequence[int], num_agents: int) -> npt.NDArray[np.uint64]:
    """Returns one policy seed a row, shape ``(replicas, agents)``.

    The seed of agent j depends on the replica's seed and on j, not on how many agents there are, so that a
    randomised policy draws the same for an agent fed alone.
    """
    return row_keys(seeds, num_agents, Purpose.POLICY).view(np.uint64)[..., 0]


def row_keys(seeds: Sequence[int], num_agents: int, purpose: Purpose, *key: int) -> npt.NDArray[np.uint32]:
    """Returns one key a row of counter-based draws, shape ``(replicas, agents, 2)``.

    The key of agent j depends on the replica's seed, the purpose and j, not on how many agents there are.

    Args:
        seeds: Of the replicas.
        num_agents: Number of agents in each.
        purpose: What the draws are for.
        *key: Further non-negative integers that name a sub-stream of the purpose.
    """
    sequences = (_sequence(seed, purpose, *key) for seed in seeds)
    return np.stack(
        [sequence.generate_state(2 * num_agents).reshape(num_agents, 2) for sequence in sequences]
    )


class EpisodeSeeds:
    """Seeds of successive episodes, as the ``reset(seed=...)`` of Gymnasium and PettingZoo has them.

    A given seed is the episode's own; episodes reset without one follow from the last seed given, or from the
    operating system's entropy where none ever was.
    """

    def __init__(self) -> None:
        """Has been given no seed yet."""
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
