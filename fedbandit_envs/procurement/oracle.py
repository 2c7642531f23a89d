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
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.procurement.knapsack import fill

FEASIBILITY_TOLERANCE = 1e-9
"""Amount by which ``sum_i l_i (q_i - alpha)`` may fall below 0 because of rounding; far below any real shortfall."""


@allocating_kernel
def _buy_all_that_pays(rows, quality, cost, capacity, threshold, margin, unit_revenue, quantity):
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
            alpha, revenue, surplus = threshold[r, j, 0] + margin, unit_revenue[r, j, 0], 0.0
            for i in range(quantity.shape[2]):
                slack = quality[r, j, i] - alpha
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
def _buy_under_shortage(rows, quality, cost, capacity, threshold, margin, unit_revenue, exact, quantity):
    """Computes the best quantities where buying all that pays violates the quality constraint; see :func:`buy`."""
    producers = quantity.shape[2]
    profit, weight = np.empty(producers), np.empty(producers)
    most, taken = np.empty(producers, np.int64), np.empty(producers, np.int64)
    producer = np.empty(producers, np.int64)
    for r in range(quantity.shape[0]):
        for j in range(quantity.shape[1]):
            if not rows[r, j]:
                continue
            alpha, room, items = threshold[r, j, 0] + margin, 0.0, 0
            for i in range(producers):
                value = unit_revenue[r, j, 0] * quality[r, j, i] - cost[r, j, i]
                slack = quality[r, j, i] - alpha
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
                quantity[r, j, i] += taken[item] if quality[r, j, i] < alpha else -taken[item]


def buy(
    rows: Array, quality: Array, cost: Array, capacity: Array, threshold: Array, margin: float, unit_revenue: Array,
    exact: bool, quantity: Array,
) -> None:  # fmt: skip
    """Computes the best quantities of some agents under the quality constraint, for given qualities of producers.

    The solvers are a kernel of their own, which is called, and so compiled, only if an agent needs them.

    Args:
        rows: Whose quantities are computed, bool ``(replicas, agents)``; overwritten by whose constraint binds. What
            concerns other agents is neither read nor written.
        quality: Qualities or estimates of them in [0, 1], ``(replicas, agents, producers)``.
        cost: Cost of a unit, same shape.
        capacity: Largest quantities, int32, same shape.
        threshold: The quality threshold alpha, ``(replicas, agents, 1)``.
        margin: Summand that is added to the threshold.
        unit_revenue: Revenue of a good unit, rho, ``(replicas, agents, 1)``.
        exact: Whether to compute the integer optimum; otherwise the quantities of Greedy SSA (Deva et al. 2021).
        quantity: Output: quantities, int32 ``(replicas, agents, producers)``.
    """
    if _buy_all_that_pays(rows, quality, cost, capacity, threshold, margin, unit_revenue, quantity):
        _buy_under_shortage(rows, quality, cost, capacity, threshold, margin, unit_revenue, exact, quantity)


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
    buy(rows, known, cost, capacity, threshold, 0.0, unit_revenue, exact, quantity)
    return quantity
