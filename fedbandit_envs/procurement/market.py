"""Procurement markets: one instance, and distributions of instances (P-FCB paper, section 6.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import (
    chosen_sizes,
    require_choice,
    require_flag,
    require_integer,
    require_number,
    require_valid,
)
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
        """The largest capacity there is."""
        return int(self.capacity.max())

    def draw(self, seed: int) -> "Market":
        """Returns this market, whatever the seed."""
        return self

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], num_agents: int) -> "Market":
        """Returns the market with given arrays.

        Args:
            arrays: ``quality``, ``cost`` and ``capacity`` as arrays or nested lists, shapes as above; cost and
                capacity may be ``(producers,)``, the same for all agents.
            num_agents: Number of agents, used if neither cost nor capacity has an agents' axis.

        Raises:
            ValueError: An entry is missing, unknown, of the wrong shape or outside its range.
        """
        if set(arrays) != {"quality", "cost", "capacity"}:
            raise ValueError(f"market has entries {sorted(arrays)}; quality, cost and capacity are required")
        quality = np.array(arrays["quality"], np.float64)
        cost = np.array(arrays["cost"], np.float64)
        capacity = np.array(arrays["capacity"])
        if quality.ndim != 1 or quality.size == 0:
            raise ValueError(f"market['quality'] has shape {quality.shape}; (producers,) is required")
        agents = next((len(array) for array in (cost, capacity) if array.ndim == 2), num_agents)
        cost, capacity = (
            np.repeat(array[np.newaxis], agents, axis=0) if array.shape == quality.shape else array
            for array in (cost, capacity)
        )
        if cost.ndim != 2 or cost.shape[0] == 0 or cost.shape[1] != quality.size:
            raise ValueError(f"market['cost'] has shape {cost.shape}; (agents, {quality.size}) is required")
        if capacity.shape != cost.shape:
            raise ValueError(f"market['capacity'] has shape {capacity.shape}; {cost.shape} is required")
        probable = (quality >= 0) & (quality <= 1)
        require_valid("market['quality']", quality, probable, "probabilities in [0, 1]")
        require_valid("market['cost']", cost, (cost >= 0) & np.isfinite(cost), "finite numbers >= 0")
        whole = np.equal(capacity, np.floor(capacity)) & (capacity >= 0) & (capacity < 2**31)
        require_valid("market['capacity']", capacity, whole, "integers in [0, 2**31)")
        return cls(quality, cost, capacity.astype(np.int32))


@dataclass(frozen=True)
class MarketDistribution:
    """A distribution over markets.

    Qualities, costs, capacities and access are drawn from streams of their own, and agent j's values do not
    depend on how many agents there are: under one seed, federations of 2 and of 40 agents meet the same producers.

    Attributes:
        name: ``uniform``: q, c ~ U[0, 1]; ``normal``: q, c ~ N(mean, sd) clipped to [0, 1].
        num_agents: Number of agents.
        num_producers: Number of producers.
        mean: Mean of the normal distribution; the papers centre it on the quality threshold.
        sd: Standard deviation of the normal distribution.
        homogeneous: Whether all agents share costs and capacities.
        max_capacity: Capacities are uniform on ``1 .. max_capacity``.
        producers_per_agent: How many producers each agent has access to, a random subset of its own (the
            P-FCB paper's future work); all of them if None.
    """

    name: DistributionName
    num_agents: int
    num_producers: int
    mean: float
    sd: float = 0.1
    homogeneous: bool = False
    max_capacity: int = 50
    producers_per_agent: int | None = None

    def __post_init__(self) -> None:
        """Checks the parameters.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        require_choice("market name", self.name, get_args(DistributionName))
        for name in ("num_agents", "num_producers", "max_capacity"):
            require_integer(name, getattr(self, name), 1)
        require_flag("homogeneous", self.homogeneous)
        if self.producers_per_agent is not None:
            require_integer("producers_per_agent", self.producers_per_agent, 1)
            if self.producers_per_agent > self.num_producers:
                raise ValueError(
                    f"producers_per_agent is {self.producers_per_agent}; None or an integer in "
                    f"[1, {self.num_producers}] is required"
                )
        require_number("sd", self.sd, 0, np.inf)
        if self.sd == 0:
            raise ValueError(
                f"sd is {self.sd}; a number > 0 is required: with sd = 0, as one place of the paper prints it, "
                "every quality equals every cost and every regret is 0"
            )

    def draw(self, seed: int) -> Market:
        """Draws the market that belongs to ``seed``."""
        qualities, costs, capacities, access = (stream(seed, Purpose.MARKET, part) for part in range(4))
        rows = 1 if self.homogeneous else self.num_agents
        shape = (rows, self.num_producers)
        capacity = capacities.integers(1, self.max_capacity, shape, np.int32, endpoint=True)
        cost = self._unit_interval(costs, shape)
        shape = (self.num_agents, self.num_producers)
        capacity, cost = np.broadcast_to(capacity, shape).copy(), np.broadcast_to(cost, shape).copy()
        if self.producers_per_agent is not None:
            rank = access.random(shape).argsort(axis=1).argsort(axis=1)
            capacity[rank >= self.producers_per_agent] = 0
        return Market(self._unit_interval(qualities, (self.num_producers,)), cost, capacity)

    def _unit_interval(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
        if self.name == "uniform":
            return generator.random(shape)
        return np.clip(generator.normal(self.mean, self.sd, shape), 0.0, 1.0)


_SHARED = ("homogeneous", "max_capacity", "producers_per_agent")
_OPTIONS = {"uniform": _SHARED, "normal": ("sd", *_SHARED)}


def make_market(
    spec: Any, num_agents: int | None, num_producers: int | None, quality_threshold: float
) -> Market | MarketDistribution:
    """Returns a given market, or the distribution from which markets are drawn.

    Args:
        spec: The name of a distribution, a mapping of the name and its arguments, or a given market, see
            :meth:`Market.from_arrays`.
        num_agents: None for 10, or for as many as an explicit market has.
        num_producers: None for 30, or for as many as an explicit market has.
        quality_threshold: Mean of the normal distribution.

    Raises:
        TypeError: The specification has the wrong type.
        ValueError: A name is unknown, or an argument unknown or out of its range.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping):
        raise TypeError(
            f"market is {spec!r}; a name, a mapping with a name or an explicit market is required"
        )
    asked = {"num_agents": num_agents, "num_producers": num_producers}
    sizes = chosen_sizes(asked, {}, {"num_agents": 10, "num_producers": 30}, "")
    if "name" not in spec:
        market = Market.from_arrays(spec, sizes["num_agents"])
        given = dict(zip(("num_agents", "num_producers"), market.cost.shape, strict=True))
        chosen_sizes(asked, given, {}, "in the market given")
        return market
    options = {key: value for key, value in spec.items() if key != "name"}
    require_choice("market name", spec["name"], _OPTIONS)
    for option in options:
        require_choice(f"market option of {spec['name']!r}", option, _OPTIONS[spec["name"]])
    return MarketDistribution(
        spec["name"], sizes["num_agents"], sizes["num_producers"], quality_threshold, **options
    )
