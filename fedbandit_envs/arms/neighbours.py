"""Sensitivity of the released counts of Bernoulli arms, and the neighbouring histories that differ most."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Pair, Sensitivity, pairs_of


def sensitivity(pulls: Array) -> Sensitivity:
    """Returns the sensitivity of the released counts ``pulls`` and ``successes``, in units of 1.

    If one observation is replaced, another arm may be pulled: a pull, and at most a success, move from one arm to
    another, so one arm has one (good or defective) outcome less, and the other arm one more. If only the outcome is
    replaced, a good outcome becomes defective or the reverse.

    Args:
        pulls: An array with the shape of the released ones, ``(replicas, agents, arms)``.
    """
    one, two, four = Change(1, 1.0), Change(2, sqrt(2)), Change(4, 2.0)
    return Sensitivity(
        {"pulls": np.ones(pulls.shape), "successes": np.ones(pulls.shape)},
        {"one-observation": four, "one-outcome": one},
        pair=Pair("pulls", "successes", {"one-observation": two, "one-outcome": two}),
    )


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the neighbouring histories that differ most; none if the environment does not name the adjacency.

    They differ in one pull. Under ``one-observation`` two different arms are pulled and both succeed; under
    ``one-outcome`` the same arm fails or succeeds. In windows that do not differ, a third arm is pulled, which fails.
    """
    idle = np.array(2)

    def history(arm: int, good: bool) -> History:
        return History({"means": [float(good), float(good), 0.0]}, np.array(arm))

    pairs = {
        "one-observation": [(history(0, True), history(1, True))],
        "one-outcome": [(history(0, False), history(0, True))],
    }
    return pairs_of(pairs, adjacency, idle)
