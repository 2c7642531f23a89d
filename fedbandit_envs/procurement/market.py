"""Procurement markets: one instance, and distributions of instances (P-FCB paper, section 6.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import (
    chosen_sizes,
    require_array,
    require_flag,
    require_integer,
    require_number,
    require_valid,
)
from fedbandit_envs.basics.entry_points import make
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
        name: ``uniform``: q, c ~ U[0, 1]; ``normal``: q, c ~ N(mean, sd) clipped to [0, 1].
        num_agents: Number of agents.
        num_producers: Number of producers.
        mean: Mean of the normal distribution; in the papers it is the quality threshold.
        sd: Standard deviation of the normal distribution.
        homogeneous: Whether all agents share costs and capacities.
        max_capacity: Capacities are uniform on ``1 .. max_capacity``.
    """

    name: DistributionName
    num_agents: int
    num_producers: int
    mean: float
    sd: float
    homogeneous: bool
    max_capacity: int

    def __post_init__(self) -> None:
        """Checks the parameters.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        for name in ("num_agents", "num_producers", "max_capacity"):
            require_integer(name, getattr(self, name), 1)
        require_flag("homogeneous", self.homogeneous)
        # One place of the paper prints sd = 0, with which every quality equals every cost and every regret is 0.
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
        if self.name == "uniform":
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
    sizes = chosen_sizes(asked, {}, {"num_agents": 10, "num_producers": 30}, "")
    if isinstance(spec, Mapping) and "name" not in spec:
        market = Market.from_arrays(spec, sizes["num_agents"])
        given = dict(zip(("num_agents", "num_producers"), market.cost.shape, strict=True))
        chosen_sizes(asked, given, {}, "in the market given")
        return market

    def normal(
        sd: float = 0.1, homogeneous: bool = False, max_capacity: int = 50, name: DistributionName = "normal"
    ) -> MarketDistribution:
        return MarketDistribution(name, *sizes.values(), quality_threshold, sd, homogeneous, max_capacity)

    def uniform(homogeneous: bool = False, max_capacity: int = 50) -> MarketDistribution:
        return normal(0.1, homogeneous, max_capacity, "uniform")

    return make("market", spec, {"uniform": uniform, "normal": normal}, MarketDistribution)
