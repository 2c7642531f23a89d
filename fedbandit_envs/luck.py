"""Luck of an episode: for all agents at once, or for each in rounds of its own where agents come and go."""

from collections.abc import Sequence

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.draws import Draws
from fedbandit_envs.streams import Purpose, row_keys


class Luck:
    """Where an episode's draws come from.

    A round's draws do not depend on what agents do, so that policies under one seed meet the same luck; an agent's do
    not depend on how many others there are.

    Attributes:
        seeds: One a replica.
        round: uint32 ``(replicas, agents)``: the round that each agent's luck is in. Counted in the rounds in which the
            agent acts, where not all act in every round.
    """

    def __init__(self, seeds: Sequence[int], agents: int, own: bool) -> None:
        """Starts in round 0.

        Args:
            seeds: One a replica.
            agents: Number of agents in each.
            own: Whether an agent's luck is counted in the rounds in which it acts, since not all act in every round.
        """
        self.seeds = seeds
        self.round = np.zeros((len(seeds), agents), np.uint32)
        self._own = own

    def draws(self, purpose: Purpose, *key: int) -> Draws:
        """Returns one kind of draws, which move on with the episode's rounds.

        Args:
            purpose: What they are for.
            *key: Further non-negative integers that name a sub-stream of the purpose.
        """
        return Draws(row_keys(self.seeds, self.round.shape[1], purpose, *key), self.round)

    def advance(self, acting: Array) -> None:
        """Goes on to the next round of those who act, bool ``(replicas, agents)``."""
        np.add(self.round, acting if self._own else 1, out=self.round, casting="unsafe")
