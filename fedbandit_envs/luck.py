"""Draws of an environment: for all agents at once, or for each in rounds of its own where agents come and go."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedbandit_envs.federation import Array
from fedbandit_envs.streams import Blocks, Fill, Purpose, stream

Rows = tuple[Array, ...]
"""Replicas and agents of some rows, as ``numpy.nonzero`` gives them."""


@dataclass(frozen=True)
class Luck:
    """Where an episode's draws come from.

    Attributes:
        seeds: One a replica.
        agents: Number of agents in each.
        own: Whether an agent's luck is counted in the rounds in which it acts, since not all act in every round.
    """

    seeds: Sequence[int]
    agents: int
    own: bool

    def generators(self, purpose: Purpose, *key: int) -> list[np.random.Generator]:
        """Returns a generator a replica; or one an agent, replica by replica, where luck is their own."""
        if not self.own:
            return [stream(seed, purpose, *key) for seed in self.seeds]
        # Another length of the key than without agents, and so other streams.
        return [stream(seed, purpose, *key, 0, agent) for seed in self.seeds for agent in range(self.agents)]


class Draws:
    """One kind of draws for every agent of every replica, made ahead in blocks of rounds.

    A round's draws have a fixed shape whatever agents do, so that policies under one seed meet the same luck.

    Attributes:
        block: The current block, ``(replicas, rounds, agents, *shape)``. Kernels take it whole, since a slice of it
            would not be contiguous.
        place: Which of the block's rounds each agent is in, int64 ``(replicas, agents)``.
    """

    def __init__(
        self,
        luck: Luck,
        purpose: Purpose,
        *key: int,
        shape: tuple[int, ...],
        fill: Fill,
        dtype: type = np.float64,
    ) -> None:
        """Prepares an empty block.

        Args:
            luck: Where draws come from.
            purpose: What they are for.
            *key: Further non-negative integers that name a sub-stream of the purpose.
            shape: Shape of one round's draws for one agent.
            fill: What is drawn.
            dtype: Of the draws.
        """
        self._generators = luck.generators(purpose, *key)
        self._own = luck.own
        self._fill = fill
        of_all = Blocks(self._generators[: len(luck.seeds)], (luck.agents, *shape), fill, dtype)
        self._together = of_all
        self.block = of_all.block
        self.place = np.full((len(luck.seeds), luck.agents), self.block.shape[1] - 1)

    def advance(self, acting: Array) -> None:
        """Goes on to the next round of those who act, bool ``(replicas, agents)``, drawing where a block is used up."""
        if not self._own:
            self.place.fill(self._together.next_round())
            return
        self.place += acting
        rounds = self.block.shape[1]
        for replica, agent in np.argwhere(self.place == rounds):
            drawn = np.empty((rounds, *self.block.shape[3:]), self.block.dtype)
            self._fill(self._generators[replica * self.place.shape[1] + agent], drawn)
            self.block[replica, :, agent] = drawn
            self.place[replica, agent] = 0

    def of(self, rows: Rows | None) -> Array:
        """Returns this round's draws of some rows, ``(some, *shape)``; for None all, ``(replicas, agents, *shape)``."""
        if rows is not None:
            return self.block[rows[0], self.place[rows], rows[1]]
        if not self._own:
            return self.block[:, self.place.flat[0]]
        replicas, agents = np.ogrid[: self.place.shape[0], : self.place.shape[1]]
        return self.block[replicas, self.place, agents]
