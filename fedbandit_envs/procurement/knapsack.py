"""An exact solver of the bounded knapsack problem with real weights: dynamic programming over an expanding core.

Items are sorted by efficiency (profit per weight). The greedy filling takes them in this order until one, the break
item, does not fit completely. The optimum differs from this filling only near the break item. So the solver decides
items outward from it, in turn the next less efficient one (whose units may be added) and the next more efficient one
(whose units may be taken out). A state consists of the room left (negative while the knapsack is too full) and the
profit so far, called gain. A state is dropped if another has at least as much room and at least as much gain, or if its
upper bound (with fractional units) does not exceed the best filling found. The scheme is Pisinger's (A minimal
algorithm for the bounded knapsack problem, INFORMS J. Comput. 12, 2000), with real numbers instead of integers.
"""

import numpy as np

from fedbandit_envs.basics.compiled import kernel

_GAIN_TOLERANCE = 1e-12
# Two rooms that differ by less are taken as equal: taking items of equal weight in different orders gives the same room
# up to rounding.
_ROOM_TOLERANCE = 1e-12


@kernel
def _grown(array, needed):
    if needed <= array.shape[0]:
        return array
    larger = np.empty(max(needed, 2 * array.shape[0]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


@kernel
def _fractional_bound(room, gain, more, less, efficiency):
    """Returns an upper bound on the gain that can be reached from a state, with fractional units of the next item.

    Args:
        room: The state's room, negative while the knapsack is too full.
        gain: The state's gain.
        more: Index of the next item whose units may be taken out.
        less: Index of the next item whose units may be added.
        efficiency: Profit per weight of each item, falling.
    """
    if room >= 0.0:
        return gain + room * (efficiency[less] if less < efficiency.shape[0] else 0.0)
    return gain + room * efficiency[more] if more >= 0 else -np.inf


@kernel
def best_filling(room, profit, weight, capacity, tolerance):
    """Fills a knapsack for the largest profit.

    Args:
        room: The weight that fits into the knapsack, >= 0.
        profit: Profit of a unit of each item, > 0, ``(items,)``, sorted by falling ``profit / weight``.
        weight: Weight of a unit of each item, > 0, same shape.
        capacity: The largest number of units of each item, integers, same shape.
        tolerance: Weight by which a filling may exceed the room, to allow for rounding.

    Returns:
        The number of units of each item, int64 ``(items,)``.
    """
    items = profit.shape[0]
    efficiency = profit / weight
    taken = np.zeros(items, np.int64)
    gain = 0.0
    less = 0
    while less < items and capacity[less] * weight[less] <= room + tolerance:
        taken[less] = capacity[less]
        room -= taken[less] * weight[less]
        gain += taken[less] * profit[less]
        less += 1
    more = less - 1

    # The decisions form a tree: for each kept state, `parent` is the state before it, `decided` the item that was
    # decided last and `units` the number of its units that were added or taken out.
    parent = np.full(256, -1, np.int64)
    units = np.zeros(256, np.int64)
    decided = np.full(256, -1, np.int64)
    kept = 1
    states = np.zeros(1, np.int64)
    rooms = np.full(1, room)
    gains = np.full(1, gain)
    best, best_parent, best_item, best_units = gain, 0, -1, 0

    new_rooms, new_gains = np.empty(256), np.empty(256)
    new_parents, new_units = np.empty(256, np.int64), np.empty(256, np.int64)
    take = True
    while states.shape[0] > 0 and (less < items or more >= 0):
        take = (take and less < items) or more < 0
        item = less if take else more
        sign = 1 if take else -1
        less += 1 if take else 0
        more -= 0 if take else 1
        count = 0
        for k in range(states.shape[0]):
            for n in range(capacity[item] + 1):
                room = rooms[k] - sign * n * weight[item]
                gain = gains[k] + sign * n * profit[item]
                if -tolerance <= room < 0.0:
                    room = 0.0
                if room >= 0.0 and gain > best:
                    best, best_parent, best_item, best_units = gain, states[k], item, n
                if _fractional_bound(room, gain, more, less, efficiency) <= best + _GAIN_TOLERANCE:
                    # The state cannot beat the best filling and is dropped. If units are added and the knapsack is too
                    # full already (or taken out and there is room already), more units only lower the bound: stop.
                    if take == (room < 0.0):
                        break
                    continue
                new_rooms, new_gains = _grown(new_rooms, count + 1), _grown(new_gains, count + 1)
                new_parents, new_units = _grown(new_parents, count + 1), _grown(new_units, count + 1)
                new_rooms[count], new_gains[count] = room, gain
                new_parents[count], new_units[count] = states[k], n
                count += 1
        order = np.argsort(-new_rooms[:count], kind="mergesort")
        parent = _grown(parent, kept + count)
        units = _grown(units, kept + count)
        decided = _grown(decided, kept + count)
        states, rooms, gains = np.empty(count, np.int64), np.empty(count), np.empty(count)
        alive = 0
        for s in order:
            bound = _fractional_bound(new_rooms[s], new_gains[s], more, less, efficiency)
            if bound <= best + _GAIN_TOLERANCE:
                continue
            if alive > 0 and new_gains[s] <= gains[alive - 1]:
                continue
            if alive > 0 and rooms[alive - 1] - new_rooms[s] <= _ROOM_TOLERANCE:
                alive -= 1  # The state before has equal room (up to rounding) and less gain.
            parent[kept], units[kept], decided[kept] = new_parents[s], new_units[s], item
            states[alive], rooms[alive], gains[alive] = kept, new_rooms[s], new_gains[s]
            kept += 1
            alive += 1
        states, rooms, gains = states[:alive], rooms[:alive], gains[:alive]
        take = not take

    node, item, n = best_parent, best_item, best_units
    while item >= 0:
        taken[item] = taken[item] - n if taken[item] > 0 else n
        item, n = decided[node], units[node]
        node = parent[node]
    return taken
