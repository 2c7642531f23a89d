"""The procurement oracles: best integer quantities for known (or estimated) qualities.

An agent maximises its expected revenue ``sum_i l_i (rho q_i - c_i)`` over integers ``0 <= l_i <= k_i`` subject to the
quality constraint ``sum_i l_i (q_i - alpha) >= 0``. There are three useful sets of producers:

* S1: quality above alpha, and a unit earns more than it costs. These are always bought.
* S2: quality below alpha, but a unit earns more than it costs. These need a surplus of quality, which S1 provides.
* S3: quality above alpha, but a unit costs more than it earns. These can be bought to get more surplus.

If all of S1 and S3 is bought first, then giving back units of S3 and buying units of S2 are the items of one bounded
knapsack: each unit has a profit, and its weight is the quality that is lost. Filling the knapsack by falling profit
per weight is Greedy SSA (Deva et al. 2021) with capacities and exchange; solving it exactly gives the integer optimum.

The exact solver of the knapsack problem is dynamic programming over an expanding core, with real weights. Items are
sorted by efficiency (profit per weight). The greedy filling takes them in this order until one, the break
item, does not fit completely. The optimum differs from this filling only near the break item. So the solver decides
items outward from it, in turn the next less efficient one (whose units may be added) and the next more efficient one
(whose units may be taken out). A state consists of the room left (negative while the knapsack is too full) and the
profit so far, called gain. A state is dropped if another has at least as much room and at least as much gain, or if its
upper bound (with fractional units) does not exceed the best filling found. The scheme is Pisinger's (A minimal
algorithm for the bounded knapsack problem, INFORMS J. Comput. 12, 2000), with real numbers instead of integers.
"""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.basics.arrays import Array, Buffers
from fedbandit_envs.basics.compiled import allocating_kernel

_GAIN_TOLERANCE = 1e-12
# Two rooms that differ by less are taken as equal: taking items of equal weight in different orders gives the same room
# up to rounding.
_ROOM_TOLERANCE = 1e-12


@allocating_kernel
def _falling(keys, count):
    """Returns the indices of the first ``count`` keys by falling key, equal ones in their order (merge sort).

    Unlike NumPy's sort, this one compiles in no time.
    """
    order, merged = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        order[i] = i
    length = 1
    while length < count:
        for start in range(0, count, 2 * length):
            left, middle = start, min(start + length, count)
            right, end = middle, min(start + 2 * length, count)
            for place in range(start, end):
                first = left < middle and (right == end or keys[order[left]] >= keys[order[right]])
                merged[place] = order[left if first else right]
                left += first
                right += 1 - first
        order, merged = merged, order
        length *= 2
    return order


@allocating_kernel
def _grown(array, needed):
    if needed <= array.shape[0]:
        return array
    larger = np.empty(max(needed, 2 * array.shape[0]), array.dtype)
    for place in range(array.shape[0]):
        larger[place] = array[place]
    return larger


@allocating_kernel
def _fill_best(room, profit, weight, capacity, efficiency, order, tolerance, taken):
    items = order.shape[0]
    gain = 0.0
    less = 0
    while less < items and capacity[order[less]] * weight[order[less]] <= room + tolerance:
        i = order[less]
        taken[i] = capacity[i]
        room -= taken[i] * weight[i]
        gain += taken[i] * profit[i]
        less += 1
    more = less - 1

    # The decisions form a tree: for each kept state, `parent` is the state before it, `decided` the item that was
    # decided last and `units` the number of its units that were added or taken out.
    parent, units, decided = np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256, np.int64)
    parent[0], units[0], decided[0] = -1, 0, -1
    kept, alive = 1, 1
    states, rooms, gains = np.empty(1, np.int64), np.empty(1), np.empty(1)
    states[0], rooms[0], gains[0] = 0, room, gain
    best, best_parent, best_item, best_units = gain, 0, -1, 0

    new_rooms, new_gains = np.empty(256), np.empty(256)
    new_parents, new_units = np.empty(256, np.int64), np.empty(256, np.int64)
    take = True
    while alive > 0 and (less < items or more >= 0):
        take = (take and less < items) or more < 0
        item = order[less if take else more]
        sign = 1 if take else -1
        less += 1 if take else 0
        more -= 0 if take else 1
        # An upper bound on the gain that can be reached from a state takes fractional units of the next item: added if
        # there is room, and taken out if the knapsack is too full.
        added = efficiency[order[less]] if less < items else 0.0
        removed = efficiency[order[more]] if more >= 0 else np.inf
        count = 0
        for k in range(alive):
            for n in range(capacity[item] + 1):
                room = rooms[k] - sign * n * weight[item]
                gain = gains[k] + sign * n * profit[item]
                if -tolerance <= room < 0.0:
                    room = 0.0
                if room >= 0.0 and gain > best:
                    best, best_parent, best_item, best_units = gain, states[k], item, n
                if gain + room * (added if room >= 0.0 else removed) <= best + _GAIN_TOLERANCE:
                    # The state cannot beat the best filling and is dropped. If units are added and the knapsack is too
                    # full already (or taken out and there is room already), more units only lower the bound: stop.
                    if take == (room < 0.0):
                        break
                    continue
                if count == new_rooms.shape[0]:
                    new_rooms, new_gains = _grown(new_rooms, count + 1), _grown(new_gains, count + 1)
                    new_parents, new_units = _grown(new_parents, count + 1), _grown(new_units, count + 1)
                new_rooms[count], new_gains[count] = room, gain
                new_parents[count], new_units[count] = states[k], n
                count += 1
        by_room = _falling(new_rooms, count)
        parent, units, decided = (
            _grown(parent, kept + count), _grown(units, kept + count), _grown(decided, kept + count)
        )  # fmt: skip
        states, rooms, gains = np.empty(count, np.int64), np.empty(count), np.empty(count)
        alive = 0
        for place in range(count):
            s = by_room[place]
            room, gain = new_rooms[s], new_gains[s]
            if gain + room * (added if room >= 0.0 else removed) <= best + _GAIN_TOLERANCE:
                continue
            if alive > 0 and gain <= gains[alive - 1]:
                continue
            if alive > 0 and rooms[alive - 1] - room <= _ROOM_TOLERANCE:
                alive -= 1  # The state before has equal room (up to rounding) and less gain.
            parent[kept], units[kept], decided[kept] = new_parents[s], new_units[s], item
            states[alive], rooms[alive], gains[alive] = kept, room, gain
            kept += 1
            alive += 1
        take = not take

    node, item, n = best_parent, best_item, best_units
    while item >= 0:
        taken[item] = taken[item] - n if taken[item] > 0 else n
        item, n = decided[node], units[node]
        node = parent[node]


@allocating_kernel
def fill(room, profit, weight, capacity, items, exact, tolerance, taken):
    """Fills a knapsack for the largest profit, or greedily: items by falling efficiency, until one fits only in part.

    Args:
        room: The weight that fits into the knapsack, >= 0.
        profit: Profit of a unit of each item, > 0, ``(items,)``; this array and the following ones may be longer.
        weight: Weight of a unit of each item, > 0, same shape.
        capacity: The largest number of units of each item, integers, same shape.
        items: Number of items.
        exact: Whether the profit has to be the largest one.
        tolerance: Weight by which a filling may exceed the room, to allow for rounding.
        taken: Output: the number of units of each item, int64, same shape.
    """
    efficiency = np.empty(items)
    for i in range(items):
        efficiency[i], taken[i] = profit[i] / weight[i], 0
    order = _falling(efficiency, items)
    if exact:
        _fill_best(room, profit, weight, capacity, efficiency, order, tolerance, taken)
        return
    for place in range(items):
        i = order[place]
        taken[i] = int(min(float(capacity[i]), np.floor((room + tolerance) / weight[i])))
        room -= taken[i] * weight[i]
        if taken[i] < capacity[i]:
            return


FEASIBILITY_TOLERANCE = 1e-9
"""Amount by which ``sum_i l_i (q_i - alpha)`` may fall below 0 because of rounding; far below any real shortfall."""


@allocating_kernel
def _buy_all_that_pays(rows, quality, sure, cost, capacity, threshold, unit_revenue, quantity):
    """Buys the whole capacity of S1 and S2, which is optimal where it meets the quality constraint.

    The arguments are those of :func:`buy`. Where the constraint is met, ``rows`` becomes False.

    Returns:
        Whether any row remains.
    """
    surpluses = np.empty(quantity.shape[2])
    remaining = False
    for r in range(quantity.shape[0]):
        for j in range(quantity.shape[1]):
            if not rows[r, j]:
                continue
            alpha, revenue, surplus = threshold[r, j, 0], unit_revenue[r, j, 0], 0.0
            for i in range(quantity.shape[2]):
                slack = sure[r, j, i] - alpha
                value = revenue * quality[r, j, i] - cost[r, j, i]
                pays = (value > 0.0) | ((value == 0.0) & (slack >= 0.0))
                units = capacity[r, j, i] if pays else np.int32(0)
                quantity[r, j, i] = units
                surpluses[i] = units * slack
            # A loop of its own: sums are not reordered, and would keep the other loop from vector instructions.
            for i in range(quantity.shape[2]):
                surplus += surpluses[i]
            rows[r, j] = surplus < -FEASIBILITY_TOLERANCE / 2
            remaining |= rows[r, j]
    return remaining


@allocating_kernel
def _buy_under_shortage(rows, quality, sure, cost, capacity, threshold, unit_revenue, exact, quantity):
    """Computes the best quantities where buying all that pays violates the quality constraint; see :func:`buy`."""
    producers = quantity.shape[2]
    profit, weight = np.empty(producers), np.empty(producers)
    most, taken = np.empty(producers, np.int64), np.empty(producers, np.int64)
    producer = np.empty(producers, np.int64)
    for r in range(quantity.shape[0]):
        for j in range(quantity.shape[1]):
            if not rows[r, j]:
                continue
            alpha, room, items = threshold[r, j, 0], 0.0, 0
            for i in range(producers):
                value = unit_revenue[r, j, 0] * quality[r, j, i] - cost[r, j, i]
                slack = sure[r, j, i] - alpha
                # The whole capacity of S1 and S3 is bought; S2 and S3 are the items of the knapsack.
                quantity[r, j, i] = 0
                if slack > 0.0 or (slack == 0.0 and value >= 0.0):
                    quantity[r, j, i] = capacity[r, j, i]
                    room += capacity[r, j, i] * slack
                if value * slack < 0.0 and capacity[r, j, i] > 0:
                    profit[items], weight[items], most[items] = abs(value), abs(slack), capacity[r, j, i]
                    producer[items] = i
                    items += 1
            fill(room, profit, weight, most, items, exact, FEASIBILITY_TOLERANCE / 2, taken)
            # Units of S2 in the knapsack are bought, and units of S3 are given back.
            for item in range(items):
                i = producer[item]
                quantity[r, j, i] += taken[item] if sure[r, j, i] < alpha else -taken[item]


def buy(
    rows: Array, quality: Array, sure: Array, cost: Array, capacity: Array, threshold: Array, unit_revenue: Array,
    exact: bool, quantity: Array,
) -> None:  # fmt: skip
    """Computes the best quantities of some agents under the quality constraint, for given qualities of producers.

    The solvers are a kernel of their own, which is called, and so compiled, only if an agent needs them.

    Args:
        rows: Whose quantities are computed, bool ``(replicas, agents)``; overwritten by whose constraint binds. What
            concerns other agents is neither read nor written.
        quality: Qualities in the revenue, or estimates of them in [0, 1], ``(replicas, agents, producers)``.
        sure: Qualities in the constraint, same shape; ``quality`` itself, or more cautious estimates.
        cost: Cost of a unit, same shape.
        capacity: Largest quantities, int32, same shape.
        threshold: The quality threshold alpha, ``(replicas, agents, 1)``.
        unit_revenue: Revenue of a good unit, rho, ``(replicas, agents, 1)``.
        exact: Whether to compute the integer optimum; otherwise the quantities of Greedy SSA (Deva et al. 2021).
        quantity: Output: quantities, int32 ``(replicas, agents, producers)``.
    """
    if _buy_all_that_pays(rows, quality, sure, cost, capacity, threshold, unit_revenue, quantity):
        _buy_under_shortage(rows, quality, sure, cost, capacity, threshold, unit_revenue, exact, quantity)


def procure(quality: Array, observation: Mapping[str, Array], *, exact: bool = False) -> Array:
    """Returns the best quantities of all agents under the quality constraint, for given qualities of producers.

    Args:
        quality: Qualities or estimates of them in [0, 1], float64, broadcast to ``(replicas, agents, producers)``.
        observation: Arrays of the observation by name: ``cost`` of a unit, float64, and ``capacity``, the largest
            quantity, int32, both ``(replicas, agents, producers)``; ``quality_threshold``, alpha, and ``unit_revenue``,
            the revenue rho of a good unit, both float64 ``(replicas, agents, 1)``.
        exact: Whether to return the integer optimum; otherwise the quantities of Greedy SSA (Deva et al. 2021).

    Returns:
        Quantities, int32 ``(replicas, agents, producers)``. They meet the quality constraint up to
        :data:`FEASIBILITY_TOLERANCE`.
    """
    # Kernels are compiled for each kind of array, so they are always given an array of qualities that can be written
    # to, and read-only views of all others.
    names = ("cost", "capacity", "quality_threshold", "unit_revenue")
    seen = Buffers({name: np.ascontiguousarray(observation[name]) for name in names}).views
    cost, capacity, threshold, unit_revenue = seen.values()
    known, quantity = np.empty(cost.shape), np.empty(cost.shape, np.int32)
    known[...] = quality
    rows = np.ones(cost.shape[:2], np.bool_)
    buy(rows, known, known, cost, capacity, threshold, unit_revenue, exact, quantity)
    return quantity
