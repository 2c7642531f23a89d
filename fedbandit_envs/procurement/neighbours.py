"""Sensitivity of procurement's counts, and the worst neighbouring histories."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.core.neighbours import History, Neighbours, pairs_of
from fedbandit_envs.core.sensitivity import Change, Pair, Sensitivity


def sensitivity(capacity: Array) -> Sensitivity:
    """Returns the sensitivity of ``delivered`` and ``good``, in units of capacity.

    Another quantity in one round changes what is delivered, and with it what is good, by the capacity at most each.
    One outcome changes good units only. More units have the same outcomes and more: so good and defective units can
    only grow with the quantity, by the capacity together. Under ``one-observation`` good units may turn into as many
    defective ones.

    Args:
        capacity: Of each agent with each producer, ``(replicas, agents, producers)``; all producers differ under
            ``one-round``.
    """
    producers = capacity.shape[2]
    changed = {"one-quantity": 2, "one-round": 2 * producers, "one-observation": 2, "one-outcome": 1}
    # Of good and of defective units.
    changed_in_pair = {"one-quantity": 1, "one-round": producers, "one-observation": 2, "one-outcome": 2}
    changes, in_pair = (
        {adjacency: Change(entries, sqrt(entries)) for adjacency, entries in numbers.items()}
        for numbers in (changed, changed_in_pair)
    )
    scale = capacity.astype(np.float64)
    scales = {"delivered": scale, "good": scale.copy()}
    return Sensitivity(scales, changes, pair=Pair("delivered", "good", in_pair))


_PRODUCERS = 2
# Beyond what is tabled, and beyond the default market's.
_CAPACITY = 80


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the worst neighbouring histories, of which one is worst for each mechanism; none under other adjacencies.

    All of a producer's units are good or all defective, so that what differs can be chosen. The agent buys all it can
    or nothing; one unit where one outcome differs.
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
