"""Procurement in the twin: the market, Greedy SSA by sorting, SS-UCB and Laplace's index."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fedbandit_envs.functional.draws import words
from fedbandit_envs.functional.environment import Environment, Played, RowProblem
from fedbandit_envs.functional.federation import Arrays, lacks
from fedbandit_envs.functional.policies import OnCounts
from fedbandit_envs.procurement.oracle import FEASIBILITY_TOLERANCE

MOST_UNITS = 120
"""The largest capacity in the twin: the probability that none of so many units is good is a number in float32, too."""


class Procurement(RowProblem):
    """Agents buy units of unknown quality; see :class:`~fedbandit_envs.procurement.env.ProcurementEnv`."""

    seen = ("quality_threshold", "unit_revenue", "cost", "capacity")

    def __init__(self, host: Any, dtype: Any) -> None:
        """Takes the package's environment; see :class:`RowProblem`."""
        super().__init__(host, dtype)
        self._most = host._market.max_capacity
        if host._drift:
            raise lacks(f"drift={host._drift}", "0")
        if self._most > MOST_UNITS:
            raise lacks(f"a capacity of {self._most}", f"at most {MOST_UNITS}")

    def params(self, host: Any) -> dict[str, np.ndarray]:
        """Returns qualities, costs and capacities, what regret is measured by, and keys of outcomes."""
        seen, rows = host._observation, host._reward.shape
        single = {name: seen[name][..., 0] for name in ("quality_threshold", "unit_revenue")}
        return {
            **single,
            **{name: seen[name] for name in ("cost", "capacity")},
            "quality": np.broadcast_to(host._quality[:, np.newaxis], (*rows, host._quality.shape[1])),
            "best": host._best_revenue,
            "penalty": host._penalty,
            "key": host._outcomes.key,
        }

    def begin(self, params: Arrays) -> Arrays:
        """Returns no units, int32 ``(producers,)``."""
        names = ("delivered", "good", "total_delivered", "total_good")
        return dict.fromkeys(names, jnp.zeros_like(params["capacity"]))

    def play(self, params: Arrays, offered: Arrays, totals: Arrays, action: Array, round_: Array) -> Played:
        """Buys the quantities ``action``, integers >= 0 ``(producers,)``; see :meth:`RowProblem.play`."""
        units = jnp.minimum(action, params["capacity"]).astype(jnp.int32)
        drawn = words(params["key"], round_, units.size) >> 1
        good = good_units(drawn, units, params["quality"], self._most)
        bought, revenue = units.sum(), params["unit_revenue"]
        expected, spent = units @ params["quality"], units @ params["cost"]
        violated = expected - params["quality_threshold"] * bought < -FEASIBILITY_TOLERANCE
        info = {
            "regret": jnp.where(violated, params["penalty"], params["best"] - (revenue * expected - spent)),
            "violation": violated,
            "excess": (action - units).sum(),
        }
        totals = {
            "delivered": units,
            "good": good,
            "total_delivered": totals["total_delivered"] + units,
            "total_good": totals["total_good"] + good,
        }
        return totals, revenue * good.sum() - spent, info


def good_units(draw: Array, units: Array, quality: Array, most: int) -> Array:
    """Returns the numbers of good units that belong to uniform draws, by inversion as in the package.

    Args:
        draw: Uniform integers on ``0 .. 2**31 - 1``.
        units: Numbers of units, int32, same shape.
        quality: Probabilities that a unit is good, same shape.
        most: The largest number of units.
    """
    dtype = quality.dtype
    flipped = quality > 0.5
    rate = jnp.where(flipped, 1.0 - quality, quality)
    # The draw exceeds the cutoff ceil(F 2^31 - 1e-3) - 1 of the package if F is at most this bound. Good units are
    # counted from 0, or, where they are the more likely ones, defective units by the draws that do not exceed the
    # cutoff of 1 - F. Sums of masses end near 1; in float32 the largest draws would be beyond them.
    bound = (draw.astype(dtype) + 1e-3) * 2.0**-31
    bound = jnp.minimum(jnp.where(flipped, 1.0 - bound, bound), 1.0 - 16 * jnp.finfo(dtype).eps)
    odds = rate / (1.0 - rate)
    more = odds * (units + 1)

    def count(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rare, mass, cumulative = state
        rare += cumulative <= bound
        # The next mass is odds (units - i) / (i + 1) times this one.
        mass *= more * (1.0 / (i + 1.0)) - odds
        return rare, mass, cumulative + mass

    mass = jnp.exp(units * jnp.log1p(-rate))
    rare = lax.fori_loop(0, most, count, (jnp.zeros_like(units), mass, mass), unroll=10)[0]
    rare = jnp.minimum(rare, units)
    return jnp.where(flipped, units - rare, rare)


def procure(quality: Array, sure: Array, observation: Arrays) -> Array:
    """Returns the quantities of Greedy SSA for given qualities, int32; see :func:`.oracle.procure` of the package.

    Args:
        quality: Qualities or estimates of them in [0, 1], ``(producers,)``.
        sure: Qualities for which the quality constraint is kept, same shape.
        observation: The agent's observation.
    """
    capacity = observation["capacity"]
    value = observation["unit_revenue"] * quality - observation["cost"]
    slack = sure - observation["quality_threshold"]
    all_that_pays = jnp.where((value > 0) | ((value == 0) & (slack >= 0)), capacity, 0)
    # Where that has too little quality: all of S1 and S3, and a knapsack of units of S2, and of S3 to give back.
    whole = jnp.where((slack > 0) | ((slack == 0) & (value >= 0)), capacity, 0)
    room, tolerance = (whole * slack).sum(), FEASIBILITY_TOLERANCE / 2
    item = (value * slack < 0) & (capacity > 0)
    weight = jnp.where(item, jnp.abs(slack), 1.0)
    ratio = jnp.where(item, jnp.abs(value) / weight, -jnp.inf)
    place = jnp.arange(ratio.size)
    # Row i of the matrix says ahead of which items i comes. To compare all pairs takes less time than to sort.
    ahead = (ratio[:, None] > ratio) | ((ratio[:, None] == ratio) & (place[:, None] < place))
    left = room - jnp.where(ahead & item[:, None], (weight * capacity)[:, None], 0.0).sum(axis=0)
    fits = jnp.floor((left + tolerance) / weight).astype(jnp.int32)
    taken = jnp.where(item, jnp.clip(fits, 0, capacity), 0)
    under_shortage = whole + jnp.where(slack < 0, taken, -taken)
    return jnp.where((all_that_pays * slack).sum() < -tolerance, under_shortage, all_that_pays)


@dataclass(frozen=True)
class ByQuality(OnCounts):
    """The base class of policies that buy by Greedy SSA as if an index of each producer were its quality.

    Attributes:
        margin: Number of standard deviations by which posterior means must exceed the quality constraint; 0 to keep
            it for the indices. See :class:`fedbandit_envs.baselines.procurement.QualityIndex`.
    """

    needs: ClassVar[tuple[str, ...]] = ("delivered", "good")
    margin: float = field(default=0.0, kw_only=True)

    def start(self, env: Environment, params: Arrays, key: Array) -> Arrays:
        """Returns a memory of quantities, and of messages; see :meth:`OnCounts.start`."""
        return {**super().start(env, params, key), "quantity": jnp.zeros(env.released["good"], jnp.int32)}

    @abstractmethod
    def quality(self, params: Arrays, carry: Arrays, round_: Array, units: Array, good: Array) -> Array:
        """Returns the index of each producer, ``(producers,)``.

        Args:
            params: The policy's parameters.
            carry: What the agent remembers.
            round_: The round, counted from 1.
            units: Numbers of known units, own and received, ``(producers,)``.
            good: Numbers of good units among them, same shape.
        """

    def act(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns quantities, int32 ``(producers,)``; see :meth:`PurePolicy.act`."""
        carry, own, received = self.known(carry, observation)
        units, good = (mine + theirs for mine, theirs in zip(own, received, strict=True))
        quality = jnp.minimum(self.quality(params, carry, observation["round"] + 1, units, good), 1.0)
        sure, bought = quality, carry["quantity"]
        if self.margin:
            sure = (good + 1.0) / (units + 2.0)
            variance = (bought**2 * (sure * (1.0 - sure) / (units + 3.0))).sum()
            sure -= params["margin"] * jnp.sqrt(variance) / jnp.maximum(bought.sum(), 1)
        quantity = procure(quality, sure, observation)
        return {**carry, "quantity": quantity}, quantity


@dataclass(frozen=True)
class PureSSUCB(ByQuality):
    """SS-UCB, and with messages FCB; see :class:`fedbandit_envs.baselines.procurement.SSUCB`.

    Attributes:
        radius_scale: Factor of the confidence radius.
        exploration_rounds: Number of first rounds with one unit from each producer.

    Example:
        >>> from fedbandit_envs.functional import PureSSUCB, make, rollout
        >>> env = make("FedProcurement-v0", num_agents=2, num_producers=4, max_cycles=50)
        >>> rollout(env, PureSSUCB(radius_scale=0.5), seeds=range(3)).regret[-1].shape
        (3, 2)
    """

    radius_scale: float = 1.0
    exploration_rounds: int = 1

    def quality(self, params: Arrays, carry: Arrays, round_: Array, units: Array, good: Array) -> Array:
        """Returns upper confidence bounds, and 1 for producers without known units; see :meth:`ByQuality.quality`."""
        inverse = 1.0 / jnp.where(units > 0, units, 1.0)
        factor = params["radius_scale"] ** 2 * 1.5 * jnp.log(round_.astype(units.dtype))
        return jnp.where(units > 0, good * inverse + jnp.sqrt(factor * inverse), 1.0)

    def act(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns quantities, int32 ``(producers,)``; see :meth:`PurePolicy.act`."""
        carry, quantity = super().act(params, carry, observation)
        explores = observation["round"] < self.exploration_rounds
        quantity = jnp.where(explores, jnp.minimum(observation["capacity"], 1), quantity)
        return {**carry, "quantity": quantity}, quantity


@dataclass(frozen=True)
class PureLaplaceIndex(ByQuality):
    """Laplace's estimates with a bonus; see :class:`fedbandit_envs.baselines.procurement.LaplaceIndex`.

    Attributes:
        width: Factor of the bonus.

    Example:
        >>> from fedbandit_envs.functional import PureLaplaceIndex, make, rollout
        >>> env = make("FedProcurement-v0", num_agents=2, num_producers=4, max_cycles=50)
        >>> rollout(env, PureLaplaceIndex(), seeds=range(3)).regret[-1].shape
        (3, 2)
    """

    width: float = 0.8

    def quality(self, params: Arrays, carry: Arrays, round_: Array, units: Array, good: Array) -> Array:
        """Returns the indices; see :meth:`ByQuality.quality`."""
        return (good + 1.0) / (units + 2.0) + params["width"] / jnp.sqrt(units + 1.0)
