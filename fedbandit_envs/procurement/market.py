"""Procurement markets: one instance, and the laws that draw one (P-FCB paper, section 6.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedbandit_envs.federation import Array
from fedbandit_envs.streams import Purpose, stream

LawName = Literal["uniform", "normal"]


@dataclass(frozen=True)
class Market:
    """What a federation procures from.

    Attributes:
        quality: Probability that a unit is good, float64 ``(producers,)`` in [0, 1]; the same for all agents.
        cost: Cost of a unit, float64 ``(agents, producers)``, not negative.
        capacity: Most units a round, int32 ``(agents, producers)``; 0 where an agent has no access.
    """

    quality: Array
    cost: Array
    capacity: Array

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> "Market":
        """Checks and builds an explicit market.

        Args:
            arrays: ``quality``, ``cost`` and ``capacity`` as arrays or nested lists, shapes as above.

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
        if cost.ndim != 2 or cost.shape[0] == 0 or cost.shape[1] != quality.size:
            raise ValueError(f"market['cost'] has shape {cost.shape}; (agents, {quality.size}) is required")
        if capacity.shape != cost.shape:
            raise ValueError(f"market['capacity'] has shape {capacity.shape}; {cost.shape} is required")
        _require(quality, (quality >= 0) & (quality <= 1), "quality", "probabilities in [0, 1] are")
        _require(cost, (cost >= 0) & np.isfinite(cost), "cost", "finite numbers >= 0 are")
        whole = np.equal(capacity, np.floor(capacity)) & (capacity >= 0) & (capacity < 2**31)
        _require(capacity, whole, "capacity", "integers in [0, 2**31) are")
        return cls(quality, cost, capacity.astype(np.int32))


def _require(array: Array, valid: Array, name: str, allowed: str) -> None:
    if not valid.all():
        where = tuple(int(i) for i in np.argwhere(~valid)[0])
        raise ValueError(f"market[{name!r}]{list(where)} is {array[where]}; {allowed} allowed")


@dataclass(frozen=True)
class MarketLaw:
    """A distribution over markets.

    Qualities, costs, capacities and access are drawn from streams of their own, and agent j's values do not
    depend on how many agents there are: under one seed, federations of 2 and of 40 agents meet the same producers.

    Attributes:
        name: ``uniform``: q, c ~ U[0, 1]; ``normal``: q, c ~ N(mean, sd) clipped to [0, 1].
        num_agents: Number of agents.
        num_producers: Number of producers.
        max_capacity: Capacities are uniform on ``1 .. max_capacity``.
        homogeneous: Whether all agents share costs and capacities.
        producers_per_agent: How many producers each agent has access to, a random subset of its own (the
            P-FCB paper's future work); all of them if None.
        mean: Mean of the normal law; the papers centre it on the quality threshold.
        sd: Standard deviation of the normal law.
    """

    name: LawName
    num_agents: int
    num_producers: int
    max_capacity: int
    homogeneous: bool
    producers_per_agent: int | None
    mean: float
    sd: float

    def __post_init__(self) -> None:
        """Refuses what is not a law.

        Raises:
            ValueError: A parameter is out of its range.
        """
        if self.name not in ("uniform", "normal"):
            raise ValueError(f"market is {self.name!r}; 'uniform', 'normal' or a mapping of arrays is allowed")
        for name in ("num_agents", "num_producers", "max_capacity"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; an integer >= 1 is required")
        subset = self.producers_per_agent
        if subset is not None and not 1 <= subset <= self.num_producers:
            raise ValueError(
                f"producers_per_agent is {subset}; None or an integer in [1, {self.num_producers}] is required"
            )
        if self.name == "normal" and not (np.isfinite(self.sd) and self.sd > 0):
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
