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

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel
from fedbandit_envs.procurement.knapsack import best_filling

FEASIBILITY_TOLERANCE = 1e-9
"""Quality units by which rounding may miss the constraint: absolute, far below any real shortfall."""

_AT_ONCE = (
    8  # Producers a pass of known length, which becomes vector instructions; a longer one's rest would not.
)


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


@kernel(inline="always")
def _apply(taken, producer, quality, threshold, quantity):
    """Buys the taken units of S2 and sells the taken units of S3 back."""
    for j in range(taken.shape[0]):
        i = producer[j]
        quantity[i] += taken[j] if quality[i] < threshold else -taken[j]


@kernel(inline="always")
def _units_that_fit(room, weight, capacity):
    return int(min(float(capacity), np.floor((room + FEASIBILITY_TOLERANCE / 2) / weight)))


@kernel
def _greedy_under_shortage(quality, cost, capacity, threshold, unit_revenue, quantity):
    room, _, weight, producer = _knapsack_items(quality, cost, capacity, threshold, unit_revenue, quantity)
    taken = np.zeros(producer.shape[0], np.int64)
    for j in range(producer.shape[0]):
        taken[j] = _units_that_fit(room, weight[j], capacity[producer[j]])
        room -= taken[j] * weight[j]
        if taken[j] < capacity[producer[j]]:
            break
    _apply(taken, producer, quality, threshold, quantity)


@kernel
def _exact_under_shortage(quality, cost, capacity, threshold, unit_revenue, quantity):
    room, profit, weight, producer = _knapsack_items(
        quality, cost, capacity, threshold, unit_revenue, quantity
    )
    taken = best_filling(room, profit, weight, capacity[producer], FEASIBILITY_TOLERANCE / 2)
    _apply(taken, producer, quality, threshold, quantity)


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
        quantity: Receives the row's quantities, int32 ``(replicas, agents, producers)``.
        surpluses: Room for a number a producer, float64 ``(producers,)`` or more.
    """
    surplus = _buy_all_that_pays(r, j, quality, cost, capacity, threshold, unit_revenue, quantity, surpluses)
    if surplus < -FEASIBILITY_TOLERANCE / 2:
        known = quality[: quantity.shape[2]]
        if exact:
            _exact_under_shortage(known, cost[r, j], capacity[r, j], threshold, unit_revenue, quantity[r, j])
        else:
            _greedy_under_shortage(known, cost[r, j], capacity[r, j], threshold, unit_revenue, quantity[r, j])


@kernel
def _procure_rows(quality, cost, capacity, threshold, unit_revenue, exact, quantity):
    surpluses = np.empty(quantity.shape[2])
    for r in range(quantity.shape[0]):
        for j in range(quantity.shape[1]):
            procure_row(
                r,
                j,
                quality[r, j],
                cost,
                capacity,
                threshold[r, j, 0],
                unit_revenue[r, j, 0],
                exact,
                quantity,
                surpluses,
            )


def procure(
    quality: Array, cost: Array, capacity: Array, threshold: Array, unit_revenue: Array, *, exact: bool
) -> Array:
    """Solves every agent's problem.

    Args:
        quality: Qualities or estimates of them, float64 ``(replicas, agents, producers)`` in [0, 1].
        cost: Costs a unit, float64, same shape.
        capacity: Most units, int32, same shape.
        threshold: The quality threshold alpha, float64 ``(replicas, agents, 1)``.
        unit_revenue: Revenue of a good unit rho, float64 ``(replicas, agents, 1)``.
        exact: The integer optimum if true, else Greedy SSA (Deva et al. 2021).

    Returns:
        Quantities, int32 ``(replicas, agents, producers)``. They meet the quality constraint up to
        :data:`FEASIBILITY_TOLERANCE`.
    """
    quantity = np.empty(capacity.shape, np.int32)
    _procure_rows(
        np.ascontiguousarray(np.broadcast_to(quality, capacity.shape)), cost, capacity,
        threshold, unit_revenue, exact, quantity,
    )  # fmt: skip
    return quantity


def procure_as_if(quality: Array, observation: Mapping[str, Array], *, exact: bool = False) -> Array:
    """Solves the problems that agents observe, as if these were the qualities; see :func:`procure`.

    Args:
        quality: Qualities or estimates of them, float64 ``(replicas, agents, producers)`` in [0, 1], or what broadcasts
            to that.
        observation: The environment's, by name.
        exact: See :func:`procure`.

    Returns:
        Quantities, int32 ``(replicas, agents, producers)``.
    """
    problem = (observation[name] for name in ("cost", "capacity", "quality_threshold", "unit_revenue"))
    return procure(quality, *map(np.ascontiguousarray, problem), exact=exact)


def constraint_binds(
    quality: Array, cost: Array, capacity: Array, threshold: Array, unit_revenue: Array
) -> Array:
    """Says for which agents buying all that pays would violate the quality constraint.

    For them optimism over qualities violates it for ever; elsewhere the oracle buys all that pays.

    Args:
        quality: True qualities, float64 ``(replicas, agents, producers)``.
        cost: Costs a unit, same shape.
        capacity: Most units, same shape.
        threshold: The quality threshold alpha, ``(replicas, agents, 1)``.
        unit_revenue: Revenue of a good unit rho, ``(replicas, agents, 1)``.

    Returns:
        bool ``(replicas, agents)``.
    """
    all_that_pays = np.where(unit_revenue * quality > cost, capacity, 0)
    binds: Array = (all_that_pays * (quality - threshold)).sum(axis=-1) < 0
    return binds
