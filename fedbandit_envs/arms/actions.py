"""Action formats of Bernoulli arms: forms in which a learning agent can choose arms."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arms.oracle import largest
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.actions import OwnActions, require_entries


class ArmNumbers(OwnActions):
    """The number of an arm, or the numbers of a superarm's arms: the environment's own actions."""

    def __init__(self, num_arms: int, slots: int) -> None:
        """Sets the space ``Discrete(num_arms)``, with several slots ``MultiDiscrete([num_arms] * slots)``."""
        several = spaces.MultiDiscrete(np.full(slots, num_arms, np.int64), dtype=np.int64)
        super().__init__(spaces.Discrete(num_arms) if slots == 1 else several)
        self._slots = slots

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Returns which arms may be chosen, bool ``(replicas, agents, slots * arms)``: in each slot those awake.

        If all arms of an agent sleep, all may be chosen, since any choice then pulls nothing.
        """
        if "awake" not in observation:
            some = observation["total_pulls"]
            return np.ones((*some.shape[:2], self._slots * some.shape[2]), np.bool_)
        awake = observation["awake"]
        return np.tile(awake | ~awake.any(axis=2, keepdims=True), self._slots)


def arms_by_means(slots: int, choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the arms with the largest estimates among those that are awake; of equal estimates the first arm's.

    Args:
        slots: How many arms an agent pulls in a round.
        choice: Estimates of the arms' means, ``(replicas, agents, arms)``.
        observation: The agents' observations.

    Raises:
        ValueError: An estimate is NaN.
    """
    require_entries("values", choice, ~np.isnan(choice), "a number")
    values = np.asarray(choice, np.float64)
    if "awake" in observation:
        values = np.where(observation["awake"], values, -np.inf)
    arms = largest(values, slots)
    return arms[..., 0] if slots == 1 else arms
