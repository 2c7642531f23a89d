"""One round of procurement for all rows: deliveries, outcomes, statistics and regret (compiled)."""

import numpy as np

from fedbandit_envs.basics.compiled import allocating_kernel, fetch
from fedbandit_envs.procurement.oracle import FEASIBILITY_TOLERANCE
from fedbandit_envs.procurement.outcomes import ROW_BYTES, good_units, good_units_tabled
from fedbandit_envs.randomness.draws import fill_bits, padded, u32


@allocating_kernel
def expected_revenue(quantity, quality, cost, unit_revenue):
    """Returns the expected revenue of every agent, ``sum_i l_i (rho q_i - c_i)``, float64 ``(replicas, agents)``.

    The sum has the same order of operations as in :func:`play_round`, so that the oracle's quantities have a regret of
    exactly 0.

    Args:
        quantity: Quantities, int32 ``(replicas, agents, producers)``.
        quality: Qualities, ``(replicas, producers)``.
        cost: Costs, ``(replicas, agents, producers)``.
        unit_revenue: Revenue of a good unit, rho.
    """
    revenue = np.empty(quantity.shape[:2])
    for r in range(quantity.shape[0]):
        for j in range(quantity.shape[1]):
            good, spent = 0.0, 0.0
            for i in range(quantity.shape[2]):
                good += quantity[r, j, i] * quality[r, i]
                spent += quantity[r, j, i] * cost[r, j, i]
            revenue[r, j] = unit_revenue * good - spent
    return revenue


@allocating_kernel
def play_round(
    active, requested, key, round_, quality, cost, capacity, table, threshold, unit_revenue,
    best_revenue, penalty, delivered, good, total_delivered, total_good, reward, regret, violation, excess,
):  # fmt: skip
    """Plays one round; see :class:`~fedbandit_envs.procurement.env.ProcurementEnv` for the quantities.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``; others buy nothing, and their outputs are 0.
        requested: Quantities that agents ask for, integers >= 0, ``(replicas, agents, producers)``.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`.
        round_: Each row's round, as counted by the draws.
        quality: Qualities, ``(replicas, producers)``.
        cost: Costs, ``(replicas, agents, producers)``.
        capacity: Capacities, same shape.
        table: Outcome tables (:func:`~fedbandit_envs.procurement.outcomes.outcome_tables`); with a third axis of size
            0, outcomes are computed without tables.
        threshold: Quality threshold alpha.
        unit_revenue: Revenue of a good unit, rho.
        best_revenue: The oracle's expected revenue, ``(replicas, agents)``.
        penalty: Regret of a round that violates the quality constraint, ``(replicas, agents)``.
        delivered: Output: delivered units, ``(replicas, agents, producers)``.
        good: Output: good units, same shape.
        total_delivered: Delivered units of all rounds, to which this round's are added, same shape.
        total_good: Good units of all rounds, to which this round's are added, same shape.
        reward: Output: realised revenue, ``(replicas, agents)``.
        regret: Output: regret, ``(replicas, agents)``.
        violation: Output: whether the quality constraint is violated, ``(replicas, agents)``.
        excess: Output: the number of units requested above capacity, ``(replicas, agents)``.
    """
    replicas, agents, producers = requested.shape
    tabled = table.shape[2] > 0
    rows, address = table.shape[2], table.ctypes.data
    bits = np.empty(padded(producers), np.uint32)
    for r in range(replicas):
        for j in range(agents):
            if not active[r, j]:
                for i in range(producers):
                    delivered[r, j, i], good[r, j, i] = 0, 0
                reward[r, j], regret[r, j], violation[r, j], excess[r, j] = 0.0, 0.0, False, 0
                continue
            above = 0
            for i in range(producers):
                units = min(requested[r, j, i], capacity[r, j, i])
                above += requested[r, j, i] - units
                delivered[r, j, i] = units
                total_delivered[r, j, i] += units
                if tabled:
                    fetch(address + ((r * producers + i) * rows + units) * ROW_BYTES)
            fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], bits)
            realised, bought, expected_good, spent = 0, 0, 0.0, 0.0
            # All sums are computed in the same loop, while the processor waits for the rows of the table from memory.
            for i in range(producers):
                draw, units, q = np.int32(bits[i] >> u32(1)), delivered[r, j, i], quality[r, i]
                if tabled:
                    window = address + ((r * producers + i) * rows + units) * ROW_BYTES
                    x = good_units_tabled(draw, units, q, window)
                else:
                    x = good_units(draw, units, q)
                good[r, j, i] = x
                total_good[r, j, i] += x
                realised += x
                bought += units
                expected_good += units * q
                spent += units * cost[r, j, i]
            violated = expected_good - threshold * bought < -FEASIBILITY_TOLERANCE
            reward[r, j] = unit_revenue * realised - spent
            violation[r, j] = violated
            excess[r, j] = above
            regret[r, j] = (
                penalty[r, j] if violated else best_revenue[r, j] - (unit_revenue * expected_good - spent)
            )
