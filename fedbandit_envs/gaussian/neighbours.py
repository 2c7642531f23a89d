"""Sensitivity of released sums of Gaussian arms, and the neighbouring histories that differ most."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Sensitivity, pairs_of


def sensitivity(pulls: Array, bound: float) -> Sensitivity:
    """Returns the sensitivity of the released ``pulls``, in units of 1, and ``rewards``, in units of 2 ``bound``.

    If one observation is replaced, either a pull and its reward move from one arm to another, or the reward of the same
    arm changes by 2 bounds at most. If only the outcome is replaced, the latter. Without a bound the unit is infinite,
    so that a privatizer refuses to add noise unless releases are clipped.

    Args:
        pulls: An array with the shape of the released ones, ``(replicas, agents, arms)``.
        bound: Largest absolute value of a reward.
    """
    scale = {"pulls": np.ones(pulls.shape), "rewards": np.full(pulls.shape, 2 * bound)}
    # Under one-observation two pulls differ by 1 and two rewards by half a unit.
    return Sensitivity(scale, {"one-observation": Change(4, sqrt(2.5)), "one-outcome": Change(1, 1.0)})


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the neighbouring histories that differ most; none if the environment does not name the adjacency.

    They differ in one pull, of rewards in [-1, 1] without randomness: of one arm with the least or the largest reward
    or, under ``one-observation``, also of two arms with the largest reward. In windows that do not differ, a third arm
    is pulled, whose reward is 0.
    """
    idle = np.array(2)

    def history(arm: int, mean: float) -> History:
        settings = {"means": [mean, mean, 0.0], "reward_sd": 0.0, "reward_bound": 1.0}
        return History(settings, np.array(arm))

    outcome = (history(0, -1.0), history(0, 1.0))
    pairs = {"one-observation": [(history(0, 1.0), history(1, 1.0)), outcome], "one-outcome": [outcome]}
    return pairs_of(pairs, adjacency, idle)
