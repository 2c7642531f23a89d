"""The bounded knapsack with real weights, exactly: dynamic programming over an expanding core.

Start from the greedy filling up to its break item and decide items outward from there, the next more and the next
less efficient one in turn, since the optimum differs from the filling only near the break item. A state is the room
left (negative while more must be given back) and the gain so far; a state with no more room and no more gain
than another is dominated, and one whose fractional bound does not beat the best filling found is dropped. The
scheme is Pisinger's (A minimal algorithm for the bounded knapsack problem, INFORMS J. Comput. 12, 2000), with
real numbers for integers.
"""

import numpy as np

from fedbandit_envs.basics.compiled import kernel

_GAIN_TOLERANCE = 1e-12
# Items of equal weight reach one room in many orders, which differ by rounding alone.
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
    """Bounds what a state can still gain: ``more`` is the next item to give back, ``less`` the next to take."""
    if room >= 0.0:
        return gain + room * (efficiency[less] if less < efficiency.shape[0] else 0.0)
    return gain + room * efficiency[more] if more >= 0 else -np.inf


@kernel
def best_filling(room, profit, weight, capacity, tolerance):
    """Fills a knapsack for the largest profit.

    Args:
        room: Weight that fits, >= 0.
        profit: Profit a unit, > 0, ``(items,)``, sorted by falling ``profit / weight``.
        weight: Weight a unit, > 0, same shape.
        capacity: Most units, integers, same shape.
        tolerance: Weight by which rounding may exceed the room.

    Returns:
        Units of each item, int64 ``(items,)``.
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

    # Decisions, a tree: with each kept state are stored the state before it and the units of the item decided there.
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
                    # Over- or undershooting further only lowers the bound.
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
                alive -= 1  # As much room but for rounding, and less gain.
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
