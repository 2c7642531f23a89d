"""The random numbers of an episode's rounds."""

from collections.abc import Sequence

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.randomness.draws import Draws
from fedbandit_envs.randomness.streams import Purpose, row_keys


class EpisodeRandomness:
    """The random numbers of an episode's rounds, for all replicas and agents.

    The random numbers of a round do not depend on actions, so that policies under one seed share common random numbers;
    the numbers of an agent do not depend on how many other agents there are.

    Attributes:
        seeds: The seed of each replica.
        round: Each agent's round counter, uint32 ``(replicas, agents)``. Where not all agents act in every round, it
            counts the rounds in which the agent acts.
    """

    def __init__(self, seeds: Sequence[int], agents: int, own: bool) -> None:
        """Starts in round 0.

        Args:
            seeds: The seed of each replica.
            agents: Number of agents in each replica.
            own: Whether each agent's round counter counts only the rounds in which the agent acts.
        """
        self.seeds = seeds
        self.round = np.zeros((len(seeds), agents), np.uint32)
        self._own = own

    def draws(self, purpose: Purpose, *key: int) -> Draws:
        """Returns the random draws for one purpose; they advance with the episode's round counters.

        Args:
            purpose: The purpose of the draws.
            *key: Further non-negative integers that name a sub-stream of the purpose.
        """
        return Draws(row_keys(self.seeds, self.round.shape[1], purpose, *key), self.round)

    def advance(self, active: Array) -> None:
        """Increases the round counters after a round.

        Args:
            active: Whether each agent has acted in the round, bool ``(replicas, agents)``.
        """
        np.add(self.round, active if self._own else 1, out=self.round, casting="unsafe")
