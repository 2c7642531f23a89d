"""Greedy and exact oracle against each other and against a mixed-integer programme."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from fedbandit_envs.procurement.oracle import FEASIBILITY_TOLERANCE, _falling, buy, procure


def instances(count, producers, seed, law="uniform"):
    rng = np.random.default_rng(seed)
    if law == "uniform":
        quality, cost = rng.random((2, count, 1, producers))
    else:
        quality, cost = np.clip(rng.normal(0.4, 0.1, (2, count, 1, producers)), 0, 1)
    return quality, cost, rng.integers(0, 51, (count, 1, producers), np.int32)


def solve(quality, cost, capacity, threshold, *, exact, unit_revenue=1.0):
    shape = (*cost.shape[:2], 1)
    seen = {"cost": cost, "capacity": capacity, "quality_threshold": np.full(shape, threshold)}
    return procure(quality, {**seen, "unit_revenue": np.full(shape, unit_revenue)}, exact=exact)


def revenue(quantity, quality, cost, unit_revenue=1.0):
    return (quantity * (unit_revenue * quality - cost)).sum(axis=-1)


def surplus(quantity, quality, threshold):
    return (quantity * (quality - threshold)).sum(axis=-1)


@pytest.mark.parametrize("producers", [6, 30])
@pytest.mark.parametrize("threshold", [0.4, 0.7])
def test_greedy_is_feasible_and_never_above_exact(producers, threshold):
    quality, cost, capacity = instances(2000, producers, seed=producers)
    greedy = solve(quality, cost, capacity, threshold, exact=False)
    exact = solve(quality, cost, capacity, threshold, exact=True)
    for quantity in (greedy, exact):
        assert (quantity >= 0).all()
        assert (quantity <= capacity).all()
        assert (surplus(quantity, quality, threshold) >= -FEASIBILITY_TOLERANCE).all()
    gap = revenue(exact, quality, cost) - revenue(greedy, quality, cost)
    assert gap.min() >= -1e-9
    # The greedy filling stops inside one producer: what it misses is worth less than one unit of it.
    assert gap.max() < 1.0


@pytest.mark.parametrize(("law", "threshold"), [("uniform", 0.7), ("uniform", 0.9), ("normal", 0.45)])
def test_exact_equals_a_mixed_integer_programme(law, threshold):
    quality, cost, capacity = instances(12, 30, seed=1, law=law)
    exact = revenue(solve(quality, cost, capacity, threshold, exact=True), quality, cost)[:, 0]
    for i in range(12):
        answer = milp(
            cost[i, 0] - quality[i, 0],
            constraints=LinearConstraint(quality[i, 0] - threshold, 0, np.inf),
            bounds=Bounds(0, capacity[i, 0]),
            integrality=np.ones(30),
            options={"mip_rel_gap": 0},
        )
        quantity = np.rint(answer.x)
        assert surplus(quantity, quality[i, 0], threshold) >= -1e-6
        # HiGHS allows 1e-6 of infeasibility, worth at most that times the best exchange rate it meets.
        assert exact[i] == pytest.approx(-answer.fun, abs=1e-4)
        if surplus(quantity, quality[i, 0], threshold) >= -FEASIBILITY_TOLERANCE:
            assert exact[i] >= revenue(quantity, quality[i, 0], cost[i, 0]) - 1e-9


def test_exact_equals_enumeration_on_small_instances():
    rng = np.random.default_rng(3)
    # A coarse grid of values makes ties and exactly tight constraints frequent.
    quality, cost = rng.integers(0, 11, (2, 400, 1, 4)) / 10
    capacity = rng.integers(0, 4, (400, 1, 4), np.int32)
    exact = solve(quality, cost, capacity, 0.5, exact=True)
    every = np.stack(np.meshgrid(*[np.arange(4)] * 4), axis=-1).reshape(-1, 4)
    for i in range(400):
        allowed = every[(every <= capacity[i, 0]).all(axis=1)]
        feasible = allowed[surplus(allowed, quality[i, 0], 0.5) >= -FEASIBILITY_TOLERANCE]
        best = revenue(feasible, quality[i, 0], cost[i, 0]).max()
        assert revenue(exact[i, 0], quality[i, 0], cost[i, 0]) == pytest.approx(best, abs=1e-9)


def test_greedy_matches_the_listing_in_words():
    """S1 in full, S2 by value per lost quality out of the surplus, S3 bought where the exchange pays."""
    quality = np.array([[[0.9, 0.5, 0.6, 0.8]]])
    cost = np.array([[[0.5, 0.1, 0.4, 0.9]]])
    capacity = np.array([[[10, 100, 100, 40]]], np.int32)
    # alpha = 0.7: S1 = {0}, surplus 10 * 0.2 = 2. S2: producer 1 earns 0.4 / 0.2 = 2 per quality, producer 2
    # earns 0.2 / 0.1 = 2, the tie goes to producer 1. S3: producer 3 loses 0.1 / 0.1 = 1 per quality: the
    # exchange pays, all 40 units make room 4. Room 6 buys 30 units of producer 1.
    np.testing.assert_array_equal(
        solve(quality, cost, capacity, 0.7, exact=False)[0, 0], np.array([10, 30, 0, 40])
    )
    # At a higher cost of producer 3 the exchange does not pay: room 2 buys 10 units.
    cost[0, 0, 3] = 1.1
    np.testing.assert_array_equal(
        solve(quality, cost, capacity, 0.7, exact=False)[0, 0], np.array([10, 10, 0, 0])
    )


def test_partial_purchases_of_room_are_rounded_up():
    quality = np.array([[[0.5, 0.8]]])
    cost = np.array([[[0.1, 0.85]]])
    capacity = np.array([[[1, 100]]], np.int32)
    # One unit of producer 0 lacks 0.2 quality; two units of producer 1 make exactly that, and rounding in
    # floating point must not turn them into three.
    np.testing.assert_array_equal(solve(quality, cost, capacity, 0.7, exact=False)[0, 0], [1, 2])
    quality[0, 0, 1] = 0.79
    np.testing.assert_array_equal(solve(quality, cost, capacity, 0.7, exact=False)[0, 0], [1, 3])


def test_buying_nothing_is_feasible_where_nothing_else_is():
    quality, cost, capacity = np.full((1, 1, 5), 0.2), np.zeros((1, 1, 5)), np.full((1, 1, 5), 9, np.int32)
    for exact in (False, True):
        assert not solve(quality, cost, capacity, 0.5, exact=exact).any()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 17, 100, 1000])
def test_the_sort_is_numpys_stable_one(count):
    rng = np.random.default_rng(count)
    for values in (2, 10, 10**6):
        keys = rng.integers(-values, values, count + 5) / 7
        # What lies behind the count is not sorted.
        np.testing.assert_array_equal(_falling(keys, count), np.argsort(-keys[:count], kind="stable"))
    assert _falling(np.array([-np.inf, 0.0, np.inf, -0.0]), 4).tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize("exact", [False, True])
def test_the_first_pass_leaves_the_rows_whose_constraint_binds_and_no_others_are_touched(exact):
    quality, cost, capacity = (array.reshape(100, 20, 9) for array in instances(2000, 9, seed=5))
    rng = np.random.default_rng(6)
    threshold = rng.uniform(0.3, 0.8, (100, 20, 1))
    revenue_of_unit = rng.choice([0.5, 1.0, 2.0], (100, 20, 1))
    seen = {"cost": cost, "capacity": capacity}
    seen |= {"quality_threshold": threshold, "unit_revenue": revenue_of_unit}
    pays = revenue_of_unit * quality > cost
    everything = np.where(pays, capacity, 0)
    short = surplus(everything, quality, threshold) < 0
    assert 0.1 < short.mean() < 0.9
    asked = rng.random((100, 20)) < 0.7
    rows, quantity = asked.copy(), np.full(capacity.shape, -7, np.int32)
    # As policies call it, with what they see: kernels are compiled anew for arrays that can be written to.
    observed = cost, capacity, threshold - 0.1, revenue_of_unit
    for array in observed:
        array.setflags(write=False)
    cost, capacity, lower, revenue_of_unit = observed
    buy(rows, quality, quality - 0.1, cost, capacity, lower, revenue_of_unit, exact, quantity)
    np.testing.assert_array_equal(rows, asked & short)
    assert (quantity[~asked] == -7).all()
    np.testing.assert_array_equal(quantity[asked & ~short], everything[asked & ~short])
    np.testing.assert_array_equal(quantity[asked], procure(quality, seen, exact=exact)[asked])
    # The first pass is not enough for the rows that it leaves: what it has bought there violates the constraint.
    bought = surplus(quantity, quality, threshold)[asked & short]
    assert (bought >= -FEASIBILITY_TOLERANCE).all()
