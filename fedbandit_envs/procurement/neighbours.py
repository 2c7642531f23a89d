"""Sensitivity of the released counts of procurement, and the neighbouring histories that differ most."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Pair, Sensitivity, pairs_of


def sensitivity(capacity: Array) -> Sensitivity:
    """Returns the sensitivity of the released counts ``delivered`` and ``good``, in units of capacity.

    Another quantity in one round changes the number of delivered units and the number of good units, each by at most
    the capacity. Another outcome changes only the number of good units. Outcomes are coupled: a larger quantity has the
    same outcomes and more, so the numbers of good and of defective units can only grow with the quantity, by at most
    the capacity together. Under ``one-observation`` good units may turn into as many defective ones.

    Args:
        capacity: Capacity of each agent with each producer, ``(replicas, agents, producers)``. Under ``one-round`` the
            numbers of all producers may differ.
    """
    producers = capacity.shape[2]
    changed = {"one-quantity": 2, "one-round": 2 * producers, "one-observation": 2, "one-outcome": 1}
    # The same, if the numbers of good and of defective units are released instead of `delivered` and `good`.
    changed_in_pair = {"one-quantity": 1, "one-round": producers, "one-observation": 2, "one-outcome": 2}
    changes, in_pair = (
        {adjacency: Change(entries, sqrt(entries)) for adjacency, entries in numbers.items()}
        for numbers in (changed, changed_in_pair)
    )
    scale = capacity.astype(np.float64)
    scales = {"delivered": scale, "good": scale.copy()}
    return Sensitivity(scales, changes, pair=Pair("delivered", "good", in_pair))


_PRODUCERS = 2
# Larger than the capacities for which outcomes are tabled, and than those of the default market.
_CAPACITY = 80


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the pairs of neighbouring histories that differ most; which pair is worst depends on the mechanism.

    The list is empty if the environment does not name the adjacency. All units of a producer are good, or all are
    defective, so that histories are deterministic. The agent buys its whole capacity or nothing; under ``one-outcome``
    the capacity is one unit.
    """
    capacity = 1 if adjacency == "one-outcome" else _CAPACITY
    differing = np.arange(_PRODUCERS) < (_PRODUCERS if adjacency == "one-round" else 1)
    idle = np.zeros(_PRODUCERS, np.int64)

    def history(buys: bool, good: bool) -> History:
        market = {
            "quality": np.full(_PRODUCERS, float(good)).tolist(),
            "cost": [0.0] * _PRODUCERS,
            "capacity": [capacity] * _PRODUCERS,
        }
        return History({"market": market}, np.where(differing & buys, capacity, 0))

    nothing, all_good, all_defective = history(False, True), history(True, True), history(True, False)
    pairs = {
        "one-quantity": [(nothing, all_good)],
        "one-round": [(nothing, all_good)],
        "one-observation": [(nothing, all_good), (all_defective, all_good)],
        "one-outcome": [(all_defective, all_good)],
    }
    return pairs_of(pairs, adjacency, idle)
