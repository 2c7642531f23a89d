"""Markets (P-FCB paper, section 6.1), one round for all rows (compiled), and how much a round changes the counts.

The number of good units among l delivered units is Binomial(l, q), by inversion of one uniform random number. Inversion
couples outcomes across quantities: with the same random number, one more unit adds one good or one defective
unit and changes nothing else. So two policies under one seed share common random numbers, and both the number of good
and the number of defective units never fall as l grows.

A draw u is a uniform integer on ``0 .. 2**31 - 1``. The number X of good units exceeds x if
``u > ceil(F(x) 2**31) - 1``, where F is the binomial distribution function: every probability is exact to 2**-31. The
right-hand side is called the cutoff of x. For small capacities and fixed qualities, the leading 16 bits of the cutoffs
are tabled for a window of x around the mean, as many as fit into one cache line. The number of cutoffs that a draw
exceeds is then counted in two vector instructions without a branch. A few draws fall outside the window, or their
leading bits are equal to those of a cutoff; for these all bits are compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, exp, floor, lgamma, log, log1p, prod, sqrt
from typing import Any, Literal

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import (
    chosen_sizes,
    require_array,
    require_flag,
    require_integer,
    require_number,
    require_valid,
)
from fedbandit_envs.basics.compiled import (
    LANES,
    allocating_kernel,
    equal,
    fetch,
    greater,
    inner_kernel,
    kernel,
    ones,
)
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Pair, Sensitivity, pairs_of
from fedbandit_envs.procurement.oracle import FEASIBILITY_TOLERANCE
from fedbandit_envs.randomness.draws import fill_bits, padded, u32
from fedbandit_envs.randomness.streams import Purpose, stream

DistributionName = Literal["uniform", "normal"]


@dataclass(frozen=True)
class Market:
    """A market: the producers' qualities, and each agent's costs and capacities.

    Attributes:
        quality: Probability that a unit is good, float64 ``(producers,)`` in [0, 1]; the same for all agents.
        cost: Cost of a unit, float64 ``(agents, producers)``, not negative.
        capacity: Most units a round, int32 ``(agents, producers)``; 0 where an agent has no access.
    """

    quality: Array
    cost: Array
    capacity: Array

    @property
    def max_capacity(self) -> int:
        """The largest capacity of any agent with any producer."""
        return int(self.capacity.max())

    def draw(self, seed: int) -> "Market":
        """Returns this market, whatever the seed."""
        return self

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], num_agents: int) -> "Market":
        """Returns the market with given arrays.

        Args:
            arrays: ``quality`` ``(producers,)``, ``cost`` and ``capacity`` ``(agents, producers)``, as arrays or nested
                lists; cost and capacity may be ``(producers,)`` if they are the same for all agents.
            num_agents: Number of agents, used if neither cost nor capacity has an agents' axis.

        Raises:
            ValueError: An entry is missing, unknown, of the wrong shape or outside its range.
        """
        if set(arrays) != {"quality", "cost", "capacity"}:
            raise ValueError(f"market has entries {sorted(arrays)}; quality, cost and capacity are required")
        either = {1: "(producers,)", 2: "(agents, producers)"}
        quality = require_array("market['quality']", arrays["quality"], {1: "(producers,)"}, 0, 1)
        cost = require_array("market['cost']", arrays["cost"], either, 0)
        capacity = require_array("market['capacity']", arrays["capacity"], either, 0, 2**31 - 1)
        require_valid("market['capacity']", capacity, capacity == np.floor(capacity), "integers")
        agents = next((len(array) for array in (cost, capacity) if array.ndim == 2), num_agents)
        shape = (agents, quality.size)
        for name, array in (("cost", cost), ("capacity", capacity)):
            if array.shape not in (shape, shape[1:]):
                raise ValueError(f"market[{name!r}] has shape {array.shape}; {shape} is required")
        return cls(
            quality, np.broadcast_to(cost, shape).copy(), np.broadcast_to(capacity, shape).astype(np.int32)
        )


@dataclass(frozen=True)
class MarketDistribution:
    """A distribution from which markets are drawn.

    Qualities, costs and capacities are drawn from separate random streams, and agent j's numbers
    do not depend on the number of agents: under one seed, federations of 2 and of 40 agents meet the same producers.

    Attributes:
        num_agents: Number of agents.
        num_producers: Number of producers.
        mean: Mean of the normal distribution; in the papers it is the quality threshold.
        sd: q, c ~ N(mean, sd) clipped to [0, 1]; with None q, c ~ U[0, 1].
        homogeneous: Whether all agents share costs and capacities.
        max_capacity: Capacities are uniform on ``1 .. max_capacity``.
    """

    num_agents: int
    num_producers: int
    mean: float
    sd: float | None = 0.1
    homogeneous: bool = False
    max_capacity: int = 50

    def __post_init__(self) -> None:
        """Checks the parameters.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        require_integer("max_capacity", self.max_capacity, 1)
        require_flag("homogeneous", self.homogeneous)
        # One place of the paper prints sd = 0, with which every quality equals every cost and every regret is 0.
        if self.sd is not None:
            require_number("sd", self.sd, 0, np.inf, open_below=True)

    def draw(self, seed: int) -> Market:
        """Returns the market drawn with ``seed``; the same seed gives the same market."""
        qualities, costs, capacities = (stream(seed, Purpose.MARKET, part) for part in range(3))
        drawn = (1 if self.homogeneous else self.num_agents, self.num_producers)
        shape = (self.num_agents, self.num_producers)
        capacity = capacities.integers(1, self.max_capacity, drawn, np.int32, endpoint=True)
        return Market(
            self._unit_interval(qualities, (self.num_producers,)),
            np.broadcast_to(self._unit_interval(costs, drawn), shape).copy(),
            np.broadcast_to(capacity, shape).copy(),
        )

    def _unit_interval(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        if self.sd is None:
            return generator.random(shape)
        return np.clip(generator.normal(self.mean, self.sd, shape), 0.0, 1.0)


def make_market(
    spec: Any, num_agents: int | None, num_producers: int | None, quality_threshold: float
) -> Market | MarketDistribution:
    """Returns the market of a specification, or the distribution from which markets are drawn.

    Args:
        spec: The name of a distribution, a mapping of the name and its arguments, or a given market, see
            :meth:`Market.from_arrays`.
        num_agents: Number of agents; None for 10, or for as many as a given market has.
        num_producers: Number of producers; None for 30, or for as many as a given market has.
        quality_threshold: Mean of the normal distribution.

    Raises:
        TypeError: The specification has the wrong type.
        ValueError: A name is unknown, or an argument unknown or out of its range.
    """
    asked = {"num_agents": num_agents, "num_producers": num_producers}
    agents, producers = chosen_sizes(asked, (), {"num_agents": 10, "num_producers": 30}, "")
    if isinstance(spec, Mapping) and "name" not in spec:
        market = Market.from_arrays(spec, agents)
        chosen_sizes(asked, market.cost.shape, {}, "in the market given")
        return market
    drawn = partial(MarketDistribution, agents, producers, quality_threshold)
    return make("market", spec, {"uniform": partial(drawn, None), "normal": drawn}, MarketDistribution)


_WINDOW = LANES
"""Number of cutoffs in a row of a table."""

ROW_BYTES = 2 * _WINDOW
"""Size of a row of a table: one cache line."""

TABLED_CAPACITY = 63
"""Largest capacity for which tables are used: four standard deviations then fit into half a window, for any quality."""


@kernel(inline="always")
def _cutoff(probability):
    # Sums of probabilities have rounding errors of up to about 1e-13. Without the shift by 1e-3, such an error could
    # change the ceiling where F is 0, 1 or a multiple of 2**-31, and a cutoff could rise with the number of units.
    probability = 0.0 if probability < 0.0 else 1.0 if probability > 1.0 else probability
    return ceil(probability * 2147483648.0 - 1e-3) - 1


@inner_kernel
def _first_of_tail(units, rate):
    """Returns x and P(X = x) for X ~ Binomial(units, rate <= 1/2), where x is so small that P(X < x) < 1e-17.

    Sums of probabilities may start at x, which lies nine standard deviations below the mean (or at 0).
    """
    mean = units * rate
    # Up to a mean of 81 the difference is negative, and from there to 82 less than 1.
    start = np.int64(floor(mean - 9.0 * sqrt(mean))) if mean > 82.0 else 0
    if start == 0:
        return 0, exp(units * log1p(-rate))
    log_mass = (
        lgamma(units + 1.0) - lgamma(start + 1.0) - lgamma(units - start + 1.0)
        + start * log(rate) + (units - start) * log1p(-rate)
    )  # fmt: skip
    return start, exp(log_mass)


@inner_kernel
def good_units(draw, units, quality):
    """Returns the number of good units that belongs to a uniform draw, computed without a table.

    Args:
        draw: Uniform integer on ``0 .. 2**31 - 1``.
        units: Number of units, >= 0.
        quality: Probability that a unit is good.

    Returns:
        The number of good units.
    """
    rare_is_good = quality <= 0.5
    rate = quality if rare_is_good else 1.0 - quality
    if units == 0 or rate == 0.0:
        return 0 if rare_is_good else units
    rare, mass = _first_of_tail(units, rate)
    odds = rate / (1.0 - rate)
    cumulative = mass
    while rare < units:
        if rare_is_good:
            if draw <= _cutoff(cumulative):
                break
        elif draw > _cutoff(1.0 - cumulative):
            break
        mass *= odds * (units - rare) / (rare + 1.0)
        cumulative += mass
        rare += 1
    return rare if rare_is_good else units - rare


@kernel(inline="always")
def _first_of_window(units, quality):
    first = np.int32(np.int32(units * quality) - np.int32(_WINDOW // 2 - 1))
    # This is max(first, 0) without a branch, which the processor could not predict.
    return np.int32(first & ~(first >> np.int32(31)))


@kernel
def _fill_table(quality, table):
    for p in range(quality.shape[0]):
        rare_is_good = quality[p] <= 0.5
        rate = quality[p] if rare_is_good else 1.0 - quality[p]
        for units in range(table.shape[1]):
            cutoffs, first = table[p, units], _first_of_window(units, quality[p])
            for place in range(_WINDOW):
                cutoffs[place] = 32767 if rare_is_good or place >= units - first else -1
            if rate == 0.0:
                continue
            rare, mass = _first_of_tail(units, rate)
            odds = rate / (1.0 - rate)
            cumulative = mass
            while rare < units:
                place = (rare if rare_is_good else units - 1 - rare) - first
                if 0 <= place < _WINDOW:
                    cutoffs[place] = _cutoff(cumulative if rare_is_good else 1.0 - cumulative) >> 16
                mass *= odds * (units - rare) / (rare + 1.0)
                cumulative += mass
                rare += 1


def outcome_tables(quality: Array, max_capacity: int) -> Array:
    """Returns tables of the leading 16 bits of the cutoffs, for every producer and quantity.

    Args:
        quality: Qualities, float64 ``(replicas, producers)``.
        max_capacity: Largest quantity, at most :data:`TABLED_CAPACITY`.

    Returns:
        Ascending cutoffs, int16 ``(replicas, producers, max_capacity + 1, 32)``, padded with a number that no draw
        exceeds.
    """
    shape = (*quality.shape, max_capacity + 1, _WINDOW)
    room = np.empty(prod(shape) + _WINDOW, np.int16)
    # The table is aligned to cache lines, so that each row lies in a single one.
    start = -room.ctypes.data % ROW_BYTES // 2
    table = room[start : start + prod(shape)].reshape(shape)
    _fill_table(quality.reshape(-1), table.reshape(-1, max_capacity + 1, _WINDOW))
    return table


@kernel(inline="always")
def good_units_tabled(draw, units, quality, window):
    """Returns the number of good units that belongs to a uniform draw, by a table; the same as :func:`good_units`.

    Args:
        draw: Uniform integer on ``0 .. 2**31 - 1``.
        units: Number of units, from 0 to the largest in the table.
        quality: Probability that a unit is good.
        window: Memory address of the table's row for the producer and the number of units. The row itself is not
            passed, since compiled code would count references to it, which takes longer than all the rest.
    """
    leading, first = np.int16(draw >> 16), _first_of_window(units, quality)
    passed = ones(greater(leading, window))
    # There is only one branch, which is hardly ever taken. Branches that depend on the draw in every call would often
    # be mispredicted by the processor.
    outside = ((passed == 0) & (first > 0)) | (passed == _WINDOW)
    if outside | (equal(leading, window) != 0):
        return np.int32(good_units(draw, units, quality))
    return np.int32(first + passed)


def expected_revenue(quantity: Array, quality: Array, cost: Array, unit_revenue: float) -> Array:
    """Returns the expected revenue of every agent, ``sum_i l_i (rho q_i - c_i)``, float64 ``(replicas, agents)``.

    Sums are added up from the first producer to the last as in :func:`play_round`, which NumPy's ``sum`` would not do.
    So the oracle's quantities have a regret of exactly 0.

    Args:
        quantity: Quantities, int32 ``(replicas, agents, producers)``.
        quality: Qualities, ``(replicas, producers)``.
        cost: Costs, ``(replicas, agents, producers)``.
        unit_revenue: Revenue of a good unit, rho.
    """
    good, spent = ((quantity * each).cumsum(axis=-1)[..., -1] for each in (quality[:, np.newaxis], cost))
    return unit_revenue * good - spent


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
        table: Outcome tables (:func:`~fedbandit_envs.procurement.rounds.outcome_tables`); with a third axis of size
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


def statistic(requested: Array, outcome: Any, capacity: Array) -> Arrays:
    """Returns the statistic of one observation of one agent: delivered and good units by name, int64 ``(producers,)``.

    Args:
        requested: Quantities that the agent asked for, integers >= 0, ``(producers,)``.
        outcome: Good units among those that were delivered, ``(producers,)``.
        capacity: Capacities; what is requested above them is not delivered.

    Raises:
        ValueError: The outcome has another shape, or a number that is no integer from 0 to the units delivered.
    """
    delivered = np.minimum(requested, capacity).astype(np.int64)
    good = require_array("outcome", outcome, {1: "(producers,)"}, 0)
    if good.shape != delivered.shape or (good % 1).any() or (good > delivered).any():
        raise ValueError(f"outcome is {outcome!r}; integers from 0 to {delivered.tolist()} are required")
    return {"delivered": delivered, "good": good.astype(np.int64)}


def sensitivity(capacity: Array) -> Sensitivity:
    """Returns the sensitivity of the released counts ``delivered`` and ``good``, in units of capacity.

    Another quantity in one round changes the number of delivered units and the number of good units, each by at most
    the capacity. Another outcome changes only the number of good units. Outcomes are coupled: a larger quantity has the
    same outcomes and more, so the numbers of good and of defective units can only grow with the quantity, by at most
    the capacity together. Under ``one-observation`` good units may turn into as many defective ones.

    Args:
        capacity: Capacity of each agent with each producer, ``(replicas, agents, producers)``. Under ``one-round`` the
            numbers of all producers may differ.
    """
    producers = capacity.shape[2]
    changed = {"one-quantity": 2, "one-round": 2 * producers, "one-observation": 2, "one-outcome": 1}
    # The same, if the numbers of good and of defective units are released instead of `delivered` and `good`.
    changed_in_pair = {"one-quantity": 1, "one-round": producers, "one-observation": 2, "one-outcome": 2}
    changes, in_pair = (
        {adjacency: Change(entries, sqrt(entries)) for adjacency, entries in numbers.items()}
        for numbers in (changed, changed_in_pair)
    )
    scale = capacity.astype(np.float64)
    scales = {"delivered": scale, "good": scale.copy()}
    return Sensitivity(scales, changes, pair=Pair("delivered", "good", in_pair))


_PRODUCERS = 2
# Larger than the capacities for which outcomes are tabled, and than those of the default market.
_CAPACITY = 80


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the pairs of neighbouring histories that differ most; which pair is worst depends on the mechanism.

    The list is empty if the environment does not name the adjacency. All units of a producer are good, or all are
    defective, so that histories are deterministic. The agent buys its whole capacity or nothing; under ``one-outcome``
    the capacity is one unit.
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
