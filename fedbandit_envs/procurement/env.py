"""The procurement environment: agents buy from shared producers of unknown quality."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.checks import require_choice, require_integer, require_number
from fedbandit_envs.federation import Array, Arrays, BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.procurement.actions import CapacityPortions, QualityIndex, Quantities
from fedbandit_envs.procurement.market import LawName, Market, MarketLaw
from fedbandit_envs.procurement.neighbours import changes
from fedbandit_envs.procurement.oracle import procure
from fedbandit_envs.procurement.outcomes import TABLED_CAPACITY, outcome_tables
from fedbandit_envs.procurement.rounds import expected_revenue, play_round
from fedbandit_envs.procurement.viewer import render_ansi, render_rgb_array
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.streams import Blocks, Purpose, stream, uniform_31_bits


class ProcurementEnv(FederatedEnv):
    r"""Federated procurement with a quality constraint.

    ## Description

    Agents (manufacturers) buy units from a common set of producers (suppliers). A unit of producer i is good with
    probability q_i, the producer's quality, which is the same for all agents and known to none. Each agent has its own
    cost c_ij a unit and capacity k_ij a round. It wants revenue, but what it buys must reach a mean quality of at
    least alpha. Learning q_i takes buying from producer i, so agents gain by sharing what they have seen. The problem
    is a combinatorial semi-bandit with a constraint (Solanki et al. 2022; Deva et al. 2021).

    ## Action Space

    `MultiDiscrete([max_capacity + 1] * num_producers)`: integer quantities l_ij >= 0 asked from each producer. What is
    asked above capacity is not delivered, and counted in `info["excess"]`. A negative, non-integer or NaN quantity, a
    wrong shape or dtype is an error that names agent, producer and value; the state stays untouched.

    Views for learning agents also offer `action_format="portions"` (`Box(0, 1, (num_producers,))`: portions of
    capacity, rounded) and `action_format="index"` (the same box: quality estimates, which Greedy SSA turns into
    quantities).

    ## Observation Space

    A `Dict` for each agent; n agents, m producers:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `round` | (1,) | int64 | rounds played so far |
    | `quality_threshold` | (1,) | float64 | alpha |
    | `unit_revenue` | (1,) | float64 | rho |
    | `cost` | (m,) | float64 | cost of a unit |
    | `capacity` | (m,) | int32 | most units a round |
    | `delivered` | (m,) | int32 | units delivered in the last round |
    | `good` | (m,) | int32 | good ones among them |
    | `total_delivered` | (m,) | int64 | units delivered so far |
    | `total_good` | (m,) | int64 | good ones among them |

    ## Starting State

    A market is drawn (or taken as given) and nothing has been bought. With `market_seed=None` every episode draws its
    own market from the episode's seed; an integer fixes the market, and the episode's seed then draws outcomes only.

    ## Rewards

    Realised revenue of the round, sum_i (rho x_ij - c_ij l_ij) with x_ij ~ Binomial(l_ij, q_i) good units. A violated
    quality constraint shows in `info`, not in the reward.

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one value an agent:

    * `regret`: expected revenue of the oracle's procurement less that of the agent's, r(s*) - r(s), if the agent's
      expected quality meets the constraint sum l q >= alpha sum l; else L, the largest regret there is,
      r(s*) - min_s r(s) (`violation="max"`), or r(s*) (`violation="optimum"`). Rounding is forgiven up to 1e-9 units.
    * `violation`: whether the constraint was violated.
    * `excess`: units asked for above capacity.

    After reset there is no information.

    ## Arguments

    See the constructor. All of them can be written as JSON.

    ## Registered Configurations

    | id | market |
    |---|---|
    | `FedProcurement-v0` | q, c ~ U[0, 1], k ~ U{1..50}; 10 agents, 30 producers |
    | `FedProcurementNormal-v0` | q, c ~ N(alpha, 0.1) clipped to [0, 1] |
    | `FedProcurementHomogeneous-v0` | as the first, costs and capacities shared by all agents |

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.procurement_v0.parallel_env()` is the federation itself.

    ## References

    * S. Solanki, S. Kanaparthi, S. Damle, S. Gujar: Differentially Private Federated Combinatorial Bandits with
      Constraints. ECML PKDD 2022.
    * A. Deva, K. Abhishek, S. Gujar: A Multi-Arm Bandit Approach to Subset Selection under Constraints. AAMAS 2021.

    ## Version History

    * v0: first version.
    """

    metadata = {  # noqa: RUF012 - PettingZoo's own form
        "name": "procurement_v0",
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        num_agents: int | None = None,
        num_producers: int | None = None,
        max_cycles: int = 1000,
        market: LawName | Mapping[str, Any] = "uniform",
        market_seed: int | Sequence[int] | None = None,
        homogeneous: bool = False,
        max_capacity: int | None = None,
        producers_per_agent: int | None = None,
        sd: float = 0.1,
        drift: float = 0.0,
        quality_threshold: float = 0.4,
        unit_revenue: float = 1.0,
        regret_oracle: Literal["exact", "greedy"] = "exact",
        violation: Literal["max", "optimum"] = "max",
        render_mode: str | None = None,
    ) -> None:
        """Sets the federation up; the market is drawn at reset.

        Args:
            num_agents: Number of agents; 10 by default, or as many as an explicit market has.
            num_producers: Number of producers; 30 by default, or as many as an explicit market has.
            max_cycles: Rounds until truncation.
            market: The law that draws markets, ``"uniform"`` or ``"normal"`` (around ``quality_threshold``), or an
                explicit market: a mapping of ``quality`` (producers,), ``cost`` and ``capacity``
                (agents, producers), arrays or nested lists.
            market_seed: None draws a new market each episode; an integer fixes the drawn market; of several, an
                episode takes the one at its own seed modulo their number.
            homogeneous: Whether drawn costs and capacities are shared by all agents.
            max_capacity: Drawn capacities are uniform on ``1 .. max_capacity``, 50 by default.
            producers_per_agent: Size of the random subset of producers each agent has access to; None for all.
            sd: Standard deviation of the normal law.
            drift: Standard deviation of the step that each quality takes after each round (reflected at 0
                and 1); 0 keeps qualities fixed.
            quality_threshold: alpha, in [0, 1].
            unit_revenue: rho > 0, revenue of a good unit.
            regret_oracle: What regret is measured against, on the true qualities: the integer optimum, or the
                papers' Greedy SSA.
            violation: Regret of a round that violates the quality constraint: ``"max"`` or ``"optimum"``.
            render_mode: None, ``"ansi"`` or ``"rgb_array"`` (needs matplotlib).

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__()
        require_integer("max_cycles", max_cycles, 1)
        require_number("drift", drift, 0, 1)
        require_number("quality_threshold", quality_threshold, 0, 1)
        require_number("unit_revenue", unit_revenue, 0, np.inf, open_below=True)
        require_choice("regret_oracle", regret_oracle, ("exact", "greedy"))
        require_choice("violation", violation, ("max", "optimum"))
        require_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self._law: MarketLaw | Market
        if isinstance(market, Mapping):
            self._law = Market.from_arrays(market)
            shape = self._law.cost.shape
            for name, value, size in (
                ("num_agents", num_agents, shape[0]),
                ("num_producers", num_producers, shape[1]),
                ("max_capacity", max_capacity, int(self._law.capacity.max())),
            ):
                if value not in (None, size):
                    raise ValueError(
                        f"{name} is {value}; None or {size}, as in the market given, is required"
                    )
            max_capacity = int(self._law.capacity.max())
        else:
            shape = (10 if num_agents is None else num_agents, 30 if num_producers is None else num_producers)
            max_capacity = 50 if max_capacity is None else max_capacity
            self._law = MarketLaw(
                market, *shape, max_capacity, homogeneous, producers_per_agent, quality_threshold, sd
            )
        self.render_mode = render_mode
        self.max_cycles = max_cycles
        self.possible_agents = [f"agent_{j}" for j in range(shape[0])]
        self._num_producers = shape[1]
        self._market_seeds = [market_seed] if isinstance(market_seed, int) else market_seed
        self._drift = drift
        self._threshold = quality_threshold
        self._unit_revenue = unit_revenue
        self._exact_regret = regret_oracle == "exact"
        self._violation = violation
        self._tabled = drift == 0.0 and max_capacity <= TABLED_CAPACITY
        self._max_capacity = max_capacity
        self._round = self.max_cycles
        quantities = Quantities(self._num_producers, max_capacity)
        self.single_action_space = quantities.space
        self.action_formats = {
            "quantities": quantities,
            "portions": CapacityPortions(self._num_producers),
            "index": QualityIndex(self._num_producers),
        }
        self.single_observation_space = self._make_observation_space(max_capacity)
        self.single_release_space = spaces.Dict(
            {name: self.single_observation_space[f"total_{name}"] for name in ("delivered", "good")}
        )

    def _make_observation_space(self, max_capacity: int) -> spaces.Dict:
        producers = (self._num_producers,)
        most = 2**53
        highest_cost = max(1.0, float(self._law.cost.max())) if isinstance(self._law, Market) else 1.0
        return spaces.Dict(
            {
                "round": spaces.Box(0, most, (1,), np.int64),
                "quality_threshold": spaces.Box(0.0, 1.0, (1,), np.float64),
                "unit_revenue": spaces.Box(0.0, self._unit_revenue, (1,), np.float64),
                "cost": spaces.Box(0.0, highest_cost, producers, np.float64),
                "capacity": spaces.Box(0, max_capacity, producers, np.int32),
                "delivered": spaces.Box(0, max_capacity, producers, np.int32),
                "good": spaces.Box(0, max_capacity, producers, np.int32),
                "total_delivered": spaces.Box(0, most, producers, np.int64),
                "total_good": spaces.Box(0, most, producers, np.int64),
            }
        )

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Draws the markets and starts one episode a seed; see :meth:`FederatedEnv.reset_batch`."""
        markets = [self._market(seed) for seed in seeds]
        if not markets:
            raise ValueError("seeds is empty; one seed a replica is required")
        rows = (len(markets), self.max_num_agents)
        producers = (*rows, self._num_producers)
        self._quality = np.stack([market.quality for market in markets])
        self._drifts = [stream(seed, Purpose.DRIFT) for seed in seeds]
        self._uniforms = Blocks(
            [stream(seed, Purpose.OUTCOME) for seed in seeds], producers[1:], uniform_31_bits, np.int32
        )
        self._table = (
            outcome_tables(self._quality, self._max_capacity)
            if self._tabled
            else np.empty((*self._quality.shape, 0, 0), np.int16)
        )
        self._observation: Arrays = {
            "round": np.zeros((*rows, 1), np.int64),
            "quality_threshold": np.full((*rows, 1), self._threshold),
            "unit_revenue": np.full((*rows, 1), self._unit_revenue),
            "cost": np.stack([market.cost for market in markets]),
            "capacity": np.stack([market.capacity for market in markets]),
            "delivered": np.zeros(producers, np.int32),
            "good": np.zeros(producers, np.int32),
            "total_delivered": np.zeros(producers, np.int64),
            "total_good": np.zeros(producers, np.int64),
        }
        self._has_released = False
        self._released_delivered = np.zeros(producers, np.int64)
        self._released_good = np.zeros(producers, np.int64)
        self._reward = np.zeros(rows)
        self._info: Arrays = {
            "regret": np.zeros(rows),
            "violation": np.zeros(rows, np.bool_),
            "excess": np.zeros(rows, np.int64),
        }
        self._measure()
        self._round = 0
        return BatchReset(dict(self._observation), {})

    def _market(self, seed: int) -> Market:
        if isinstance(self._law, Market):
            return self._law
        if self._market_seeds is not None:
            seed = self._market_seeds[seed % len(self._market_seeds)]
        return self._law.draw(seed)

    def _measure(self) -> None:
        """Solves the agents' problems for the present qualities: what regret is measured against."""
        seen = self._observation
        quality = np.ascontiguousarray(np.broadcast_to(self._quality[:, np.newaxis], seen["cost"].shape))
        best = procure(
            quality, seen["cost"], seen["capacity"], seen["quality_threshold"], seen["unit_revenue"],
            exact=self._exact_regret,
        )  # fmt: skip
        self._best_revenue = expected_revenue(best, self._quality, seen["cost"], self._unit_revenue)
        value = self._unit_revenue * quality - seen["cost"]
        worst = (seen["capacity"] * np.minimum(value, 0.0)).sum(axis=-1)
        self._penalty = self._best_revenue - (worst if self._violation == "max" else 0.0)

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`.

        Args:
            action: Quantities, any integer dtype, ``(replicas, agents, producers)``.
        """
        if self._round >= self.max_cycles:
            raise ResetNeeded(f"no episode is running (max_cycles is {self.max_cycles}); call reset first")
        self._refuse_bad(action)
        if action.dtype not in (np.int32, np.int64) or not action.flags.c_contiguous:
            action = np.ascontiguousarray(action, np.int64)
        seen = self._observation
        index = self._uniforms.next_round()
        play_round(
            action, self._uniforms.block, index, self._quality, seen["cost"], seen["capacity"], self._table,
            self._threshold, self._unit_revenue, self._best_revenue, self._penalty,
            seen["delivered"], seen["good"], seen["total_delivered"], seen["total_good"],
            self._reward, self._info["regret"], self._info["violation"], self._info["excess"],
        )  # fmt: skip
        self._round += 1
        seen["round"].fill(self._round)
        if self._drift > 0.0:
            self._move_qualities()
        truncated = np.full(self._reward.shape, self._round == self.max_cycles)
        return BatchStep(dict(seen), self._reward, truncated, dict(self._info))

    def _refuse_bad(self, action: Array) -> None:
        """Raises on an action that is no array of quantities, naming agent, producer and value."""
        shape = self._observation["cost"].shape
        if not isinstance(action, np.ndarray):
            raise TypeError(f"action is a {type(action).__name__}; a numpy array is required")
        if action.shape != shape:
            raise ValueError(
                f"action has shape {action.shape}; (replicas, agents, producers) = {shape} is required"
            )
        if np.issubdtype(action.dtype, np.integer):
            if action.min() >= 0 and action.max() < 2**63:
                return
            valid = (action >= 0) & (action < 2**63)
        elif np.issubdtype(action.dtype, np.floating):
            valid = (action >= 0) & (action == np.floor(action)) & (action < np.inf)
        else:
            valid = np.ones(shape, np.bool_)
        if valid.all():
            raise TypeError(f"action has dtype {action.dtype}; an integer dtype is required")
        replica, agent, producer = (int(i) for i in np.argwhere(~valid)[0])
        raise ValueError(
            f"action: {self.possible_agents[agent]} (replica {replica}) asks producer {producer} for "
            f"{action[replica, agent, producer]} units; an integer >= 0 is required"
        )

    def _move_qualities(self) -> None:
        """Takes one step of the reflected random walk; rounds and agents do not change what is drawn."""
        steps = np.stack([generator.standard_normal(self._num_producers) for generator in self._drifts])
        moved = np.abs(self._quality + self._drift * steps) % 2.0
        self._quality = np.where(moved > 1.0, 2.0 - moved, moved)
        self._measure()

    def release(self, senders: Array) -> Arrays:
        """Lets units and good units leave; see :meth:`FederatedEnv.release`.

        Returns:
            ``delivered`` and ``good``, int64 ``(replicas, agents, producers)``: units since the agent last sent.
        """
        sends = np.asarray(senders, np.bool_)[..., np.newaxis]
        self._has_released = self._has_released or bool(sends.any())
        increments = {}
        for name, released in (("delivered", self._released_delivered), ("good", self._released_good)):
            grown = np.where(sends, self._observation[f"total_{name}"] - released, 0)
            released += grown
            increments[name] = grown
        return increments

    def sensitivity(self) -> Sensitivity:
        """Says how much a release can betray; see :meth:`FederatedEnv.sensitivity`.

        Returns:
            The scale of ``delivered`` and ``good``, both the capacity, float64 ``(replicas, agents, producers)``:
            another quantity in one round changes what is delivered, and with it what is good, by so much at most.
            The changes are those of :func:`~fedbandit_envs.procurement.neighbours.changes`.
        """
        if not hasattr(self, "_observation"):
            raise ResetNeeded("sensitivity() was called before reset()")
        capacity = self._observation["capacity"].astype(np.float64)
        scale = {"delivered": capacity, "good": capacity.copy()}
        return Sensitivity(scale, changes(self._num_producers))

    def hidden(self) -> Arrays:
        """Returns ``quality``, float64 ``(replicas, agents, producers)``: the present true qualities."""
        shape = self._observation["cost"].shape
        return {"quality": np.broadcast_to(self._quality[:, np.newaxis], shape).copy()}

    @property
    def hidden_space(self) -> spaces.Dict:
        """One agent's space of :meth:`hidden`."""
        return spaces.Dict({"quality": spaces.Box(0.0, 1.0, (self._num_producers,), np.float64)})

    def render(self) -> str | Array | None:
        """Draws replica 0 in the mode chosen at construction: text, an RGB array, or nothing."""
        if self.render_mode is None:
            return None
        if self._round == self.max_cycles and not hasattr(self, "_observation"):
            raise ResetNeeded("render() was called before reset()")
        scene = {name: array[0] for name, array in (*self._observation.items(), *self._info.items())}
        draw = render_ansi if self.render_mode == "ansi" else render_rgb_array
        return draw(scene, self._quality[0])
