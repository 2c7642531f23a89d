"""The procurement oracles: best integer quantities for known (or estimated) qualities.

Agent's problem: maximise ``sum_i l_i (rho q_i - c_i)`` over integers ``0 <= l_i <= k_i`` subject to the quality
constraint ``sum_i l_i (q_i - alpha) >= 0``. Producers that lower the mean quality but pay (S2) compete for room
that good and paying ones (S1) make; good but losing ones (S3) can be bought to make more. Seen from "all of S3
bought", selling S3 units back and buying S2 units are both items of one bounded knapsack whose weight is lost
quality. Filling it by profit per weight is Greedy SSA (Deva et al. 2021) with capacities and exchange;
solving it exactly gives the integer optimum.
"""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.procurement.knapsack import best_filling

FEASIBILITY_TOLERANCE = 1e-9
"""Quality units by which rounding may miss the constraint: absolute, far below any real shortfall."""

# Producers a pass of known length, which becomes vector instructions; a longer one's rest would not.
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
    """Fills ``quantity`` with S1 and S2 in full; returns the surplus of quality this leaves."""
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
    """Buys S1 and S3 in full; returns the room this makes and the knapsack's items, best first.

    Items are rows ``(profit, weight)`` per unit, with the producer's index; a tie goes to the lower index.
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
    # Units of S2 are bought, and those of S3 sold back.
    for j in range(taken.shape[0]):
        i = producer[j]
        quantity[i] += taken[j] if quality[i] < threshold else -taken[j]


@kernel(forceinline=True)
def procure_row(r, j, quality, cost, capacity, threshold, unit_revenue, exact, quantity, surpluses):
    """Solves one agent's problem, for use inside other kernels.

    One pass without a sort where buying all that pays leaves no shortage of quality: then it is optimal. Arrays are
    handed on whole: a row cut out of one costs more than the pass, since compiled code counts who refers to it.

    Args:
        r: The replica.
        j: The agent.
        quality: Qualities or estimates of them, ``(producers,)`` in [0, 1]; there may be more room behind them.
        cost: Costs a unit, ``(replicas, agents, producers)``.
        capacity: Most units, int32, same shape.
        threshold: The quality threshold alpha.
        unit_revenue: Revenue of a good unit, rho.
        exact: The integer optimum if true, else Greedy SSA.
        quantity: Output: the row's quantities, int32 ``(replicas, agents, producers)``.
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
    """Solves the problems that agents observe, as if these were the qualities.

    Args:
        quality: Qualities or estimates of them in [0, 1], float64 ``(replicas, agents, producers)``, or what broadcasts
            to that.
        observation: The environment's, by name: ``cost`` a unit, float64, and ``capacity``, the most units, int32, both
            ``(replicas, agents, producers)``; ``quality_threshold``, alpha, and ``unit_revenue``, the revenue rho of a
            good unit, both float64 ``(replicas, agents, 1)``.
        exact: The integer optimum if true, else Greedy SSA (Deva et al. 2021).

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
