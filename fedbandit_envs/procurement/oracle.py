"""The procurement oracles: best integer quantities for known (or estimated) qualities.

An agent maximises its expected revenue ``sum_i l_i (rho q_i - c_i)`` over integers ``0 <= l_i <= k_i`` subject to the
quality constraint ``sum_i l_i (q_i - alpha) >= 0``. There are three useful sets of producers:

* S1: quality above alpha, and a unit earns more than it costs. These are always bought.
* S2: quality below alpha, but a unit earns more than it costs. These need a surplus of quality, which S1 provides.
* S3: quality above alpha, but a unit costs more than it earns. These can be bought to get more surplus.

If all of S1 and S3 is bought first, then giving back units of S3 and buying units of S2 are the items of one bounded
knapsack: each unit has a profit, and its weight is the quality that is lost. Filling the knapsack by falling profit
per weight is Greedy SSA (Deva et al. 2021) with capacities and exchange; solving it exactly gives the integer optimum.
"""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.procurement.knapsack import best_filling

FEASIBILITY_TOLERANCE = 1e-9
"""Amount by which ``sum_i l_i (q_i - alpha)`` may fall below 0 because of rounding; far below any real shortfall."""

# Number of producers in an inner loop of constant length, which the compiler turns into vector instructions.
_AT_ONCE = 8


@kernel(inline="always")
def _buy_if_it_pays(r, j, i, quality, cost, capacity, threshold, unit_revenue, quantity, surpluses):
    slack = quality[i] - threshold
    value = unit_revenue * quality[i] - cost[r, j, i]
    pays = (value > 0.0) | ((value == 0.0) & (slack >= 0.0))
    units = capacity[r, j, i] if pays else np.int32(0)
    quantity[r, j, i] = units
    surpluses[i] = units * slack


@kernel(forceinline=True)
def _buy_all_that_pays(r, j, quality, cost, capacity, threshold, unit_revenue, quantity, surpluses):
    """Writes the whole capacity of S1 and S2 to ``quantity``, and returns the surplus of quality that they leave."""
    producers = quantity.shape[2]
    whole = producers - producers % _AT_ONCE
    for first in range(0, whole, _AT_ONCE):
        for place in range(_AT_ONCE):
            _buy_if_it_pays(
                r, j, first + place, quality, cost, capacity, threshold, unit_revenue, quantity, surpluses
            )
    for i in range(whole, producers):
        _buy_if_it_pays(r, j, i, quality, cost, capacity, threshold, unit_revenue, quantity, surpluses)
    surplus = 0.0
    for i in range(producers):
        surplus += surpluses[i]
    return surplus


@kernel
def _knapsack_items(quality, cost, capacity, threshold, unit_revenue, quantity):
    """Buys the whole capacity of S1 and S3, and returns the surplus of quality and the items of the knapsack.

    Returns:
        The surplus (the knapsack's room), and for each item, by falling profit per weight, the profit of a unit, its
        weight, and the index of its producer. Of items with equal ratio the lower index comes first.
    """
    num_producers = quantity.shape[0]
    profit = np.empty(num_producers)
    weight = np.empty(num_producers)
    efficiency = np.empty(num_producers)
    producer = np.empty(num_producers, np.int64)
    room = 0.0
    count = 0
    for i in range(num_producers):
        value = unit_revenue * quality[i] - cost[i]
        slack = quality[i] - threshold
        quantity[i] = 0
        if slack > 0.0 or (slack == 0.0 and value >= 0.0):
            quantity[i] = capacity[i]
            room += capacity[i] * slack
        if value * slack < 0.0 and capacity[i] > 0:
            profit[count] = abs(value)
            weight[count] = abs(slack)
            efficiency[count] = -profit[count] / weight[count]
            producer[count] = i
            count += 1
    order = np.argsort(efficiency[:count], kind="mergesort")
    return room, profit[:count][order], weight[:count][order], producer[:count][order]


@kernel
def _buy_under_shortage(quality, cost, capacity, threshold, unit_revenue, exact, quantity):
    room, profit, weight, producer = _knapsack_items(
        quality, cost, capacity, threshold, unit_revenue, quantity
    )
    if exact:
        taken = best_filling(room, profit, weight, capacity[producer], FEASIBILITY_TOLERANCE / 2)
    else:
        taken = np.zeros(producer.shape[0], np.int64)
        for j in range(producer.shape[0]):
            fit = np.floor((room + FEASIBILITY_TOLERANCE / 2) / weight[j])
            taken[j] = int(min(float(capacity[producer[j]]), fit))
            room -= taken[j] * weight[j]
            if taken[j] < capacity[producer[j]]:
                break
    # Units of S2 in the knapsack are bought, and units of S3 are given back.
    for j in range(taken.shape[0]):
        i = producer[j]
        quantity[i] += taken[j] if quality[i] < threshold else -taken[j]


@kernel(forceinline=True)
def procure_row(r, j, quality, cost, capacity, threshold, unit_revenue, exact, quantity, surpluses):
    """Computes the best quantities of one agent of one replica, for use inside other kernels.

    If buying everything that pays (S1 and S2) meets the quality constraint, this is optimal, and one pass over the
    producers suffices. Arrays are passed whole, and not the agent's row of them: compiled code counts references to
    such a row, which takes longer than the pass.

    Args:
        r: Index of the replica.
        j: Index of the agent.
        quality: Qualities or estimates of them in [0, 1], ``(producers,)``; the array may be longer.
        cost: Cost of a unit, ``(replicas, agents, producers)``.
        capacity: Largest quantities, int32, same shape.
        threshold: The quality threshold alpha.
        unit_revenue: Revenue of a good unit, rho.
        exact: Whether to return the integer optimum; otherwise the quantities of Greedy SSA.
        quantity: Output: the agent's quantities, in an int32 array ``(replicas, agents, producers)``.
        surpluses: Scratch array, float64 ``(producers,)`` or more.
    """
    surplus = _buy_all_that_pays(r, j, quality, cost, capacity, threshold, unit_revenue, quantity, surpluses)
    if surplus < -FEASIBILITY_TOLERANCE / 2:
        known = quality[: quantity.shape[2]]
        _buy_under_shortage(known, cost[r, j], capacity[r, j], threshold, unit_revenue, exact, quantity[r, j])


@kernel
def _procure_rows(quality, cost, capacity, threshold, unit_revenue, exact, quantity):
    surpluses = np.empty(quantity.shape[2])
    for r in range(quantity.shape[0]):
        for j in range(quantity.shape[1]):
            procure_row(
                r, j, quality[r, j], cost, capacity, threshold[r, j, 0], unit_revenue[r, j, 0], exact,
                quantity, surpluses,
            )  # fmt: skip


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
    names = ("cost", "capacity", "quality_threshold", "unit_revenue")
    problem = [np.ascontiguousarray(observation[name]) for name in names]
    quantity = np.empty(problem[1].shape, np.int32)
    quality = np.ascontiguousarray(np.broadcast_to(quality, quantity.shape))
    _procure_rows(quality, *problem, exact, quantity)
    return quantity
