"""Sensitivity of the counts of Bernoulli arms, and the worst neighbouring histories."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.core.neighbours import History, Neighbours, pairs_of
from fedbandit_envs.core.sensitivity import Change, Pair, Sensitivity


def sensitivity(pulls: Array) -> Sensitivity:
    """Returns the sensitivity of ``pulls`` and ``successes``, in units of 1.

    Another arm pulled moves a pull, and a success at most, from one arm to another: that is one good or defective
    outcome less here, and one more there. Another outcome makes a good one defective.

    Args:
        pulls: An array of the released shape, ``(replicas, agents, arms)``.
    """
    one, two, four = Change(1, 1.0), Change(2, sqrt(2)), Change(4, 2.0)
    return Sensitivity(
        {"pulls": np.ones(pulls.shape), "successes": np.ones(pulls.shape)},
        {"one-observation": four, "one-outcome": one},
        pair=Pair("pulls", "successes", {"one-observation": two, "one-outcome": two}),
    )


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the worst neighbouring histories; none under adjacencies that are not this environment's.

    An arm that succeeds in the place of another, or one in the place of a failure; in windows that do not differ a
    third arm is pulled, which fails.
    """
    idle = np.array(2)

    def history(arm: int, good: bool) -> History:
        return History({"means": [float(good), float(good), 0.0]}, np.array(arm))

    pairs = {
        "one-observation": [(history(0, True), history(1, True))],
        "one-outcome": [(history(0, False), history(0, True))],
    }
    return pairs_of(pairs, adjacency, idle)
