"""The procurement environment: agents buy from shared producers of unknown quality."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.core.actions import Estimates
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.core.problem import MOST, Problem
from fedbandit_envs.core.rendering import viewers_of
from fedbandit_envs.procurement import actions, rounds
from fedbandit_envs.procurement.oracle import procure
from fedbandit_envs.randomness.draws import EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose, stream


class ProcurementEnv(Problem, name="procurement_v0"):
    r"""Federated procurement with a quality constraint.

    ## Description

    Agents (manufacturers) buy units from a common set of producers (suppliers). A unit of producer $i$ is good with
    probability $q_i$, the producer's quality, which is the same for all agents and known to none. Each agent $j$ has
    its own cost $c_{ij}$ of a unit and capacity $k_{ij}$, the largest number of units in a round. It wants revenue, but
    the units that it buys must have a mean quality of at least $\alpha$. An agent learns $q_i$ only by buying from
    producer $i$, so agents gain by sharing their data. The problem is a combinatorial semi-bandit with a constraint
    (Solanki et al. 2022; Deva et al. 2021).

    ## Action Space

    `MultiDiscrete([max_capacity + 1] * num_producers)`: integer quantities requested from each producer. Units
    requested above capacity are not delivered, and counted in `info["excess"]`; $l_{ij} \ge 0$ below is the number of
    units that are delivered. A negative, non-integer or NaN quantity, a wrong shape or dtype is an error that names
    agent, producer and value; the state does not change.

    Views for learning agents also offer `action_format="portions"` (`Box(0, 1, (num_producers,))`: portions of
    capacity, rounded) and `action_format="index"` (the same box: quality estimates, which Greedy SSA turns into
    quantities).

    ## Observation Space

    A `Dict` for each agent; n agents, m producers:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `round` | (1,) | int64 | rounds played so far |
    | `quality_threshold` | (1,) | float64 | $\alpha$ |
    | `unit_revenue` | (1,) | float64 | $\rho$ |
    | `cost` | (m,) | float64 | $c_{ij}$, cost of a unit |
    | `capacity` | (m,) | int32 | $k_{ij}$, largest number of units in a round |
    | `delivered` | (m,) | int32 | units delivered in the last round |
    | `good` | (m,) | int32 | good units among those delivered in the last round |
    | `total_delivered` | (m,) | int64 | units delivered so far |
    | `total_good` | (m,) | int64 | good units among all delivered so far |

    Views for learning agents also offer `features=True`: a flat box of features in [-1, 1] instead of this `Dict`, see
    :class:`~fedbandit_envs.procurement.actions.ProcurementFeatures`.

    ## Starting State

    A market is drawn (or taken as given) and nothing has been bought. With `instance_seed=None` every episode draws its
    own market from the episode's seed; an integer fixes the market, and the episode's seed then draws outcomes only.

    ## Rewards

    Realised revenue of the round, where $x_{ij}$ units of producer $i$ turn out good:

    $$\sum_i (\rho \, x_{ij} - c_{ij} \, l_{ij}), \qquad x_{ij} \sim \text{Binomial}(l_{ij}, q_i)$$

    A violated quality constraint shows in `info`, not in the reward.

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one number for each agent; after reset the same names with zeros:

    * `regret`: if the agent's purchase $s$ meets the constraint $\sum_i l_{ij} q_i \ge \alpha \sum_i l_{ij}$, the
      expected revenue of the oracle's purchase $s^*$ minus its own, $r(s^*) - r(s)$. If not, the largest possible
      regret $r(s^*) - \min_s r(s)$ (`violation="max"`), or $r(s^*)$ (`violation="optimum"`). The constraint has a
      tolerance of 1e-9 units for rounding.
    * `violation`: whether the constraint was violated.
    * `excess`: number of units requested above capacity.

    ## Arguments

    See the constructor. All of them are JSON-serialisable.

    ## Registered Configurations

    | id | market |
    |---|---|
    | `FedProcurement-v0` | $q, c \sim U[0, 1]$, $k \sim U\{1, \ldots, 50\}$; 10 agents, 30 producers |
    | `FedProcurementNormal-v0` | $q, c \sim N(\alpha, 0.1)$ clipped to $[0, 1]$: `market="normal"` |
    | `FedProcurementHomogeneous-v0` | as the first, costs and capacities shared by all agents |

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.procurement_v0.parallel_env()` is the federation itself, `env()` the same agent after agent.

    ## Example

    ```python
    >>> from fedbandit_envs import procurement_v0
    >>> env = procurement_v0.parallel_env(num_agents=2, num_producers=3)
    >>> observations, infos = env.reset(seed=7)
    >>> observations, rewards, _, _, infos = env.step({agent: [1, 0, 2] for agent in env.agents})
    >>> sorted(observations), infos["agent_0"]["regret"] >= 0
    (['agent_0', 'agent_1'], True)

    ```

    ## References

    * S. Solanki, S. Kanaparthi, S. Damle, S. Gujar: Differentially Private Federated Combinatorial Bandits with
      Constraints. ECML PKDD 2022.
    * A. Deva, K. Abhishek, S. Gujar: A Multi-Arm Bandit Approach to Subset Selection under Constraints. AAMAS 2021.

    ## Version History

    * v0: first version.
    """

    statistics = ("delivered", "good")
    learned = ("delivered", "good")
    information = {"violation": np.bool_, "excess": np.int64}  # noqa: RUF012 - never written to
    open_above = True
    viewers = viewers_of(actions.picture)
    features = actions.ProcurementFeatures
    neighbours = staticmethod(rounds.worst_neighbours)

    def __init__(
        self,
        num_agents: int | None = None,
        num_producers: int | None = None,
        max_cycles: int = 1000,
        market: rounds.DistributionName | Mapping[str, Any] = "uniform",
        instance_seed: int | Sequence[int] | None = None,
        drift: float = 0.0,
        quality_threshold: float = 0.4,
        unit_revenue: float = 1.0,
        regret_oracle: Literal["exact", "greedy"] = "exact",
        violation: Literal["max", "optimum"] = "max",
        render_mode: str | None = None,
    ) -> None:
        """Creates the federation; the market is drawn at reset.

        Args:
            num_agents: Number of agents; 10 by default, or as many as an explicit market has.
            num_producers: Number of producers; 30 by default, or as many as an explicit market has.
            max_cycles: Rounds until truncation.
            market: The distribution of markets: its name, ``"uniform"`` or ``"normal"`` (around
                ``quality_threshold``); a mapping of the name and further arguments,
                ``{"name": "normal", "sd": 0.2, "homogeneous": True}``, see
                :class:`~fedbandit_envs.procurement.rounds.MarketDistribution`; or an explicit market, a mapping of
                ``quality`` (producers,), ``cost`` and ``capacity`` (agents, producers), arrays or nested lists.
            instance_seed: None draws a new market in each episode; an integer fixes the drawn market; from a sequence
                of n integers, an episode with seed s takes entry s mod n.
            drift: Standard deviation of the step that each quality takes after each round (reflected at 0
                and 1); 0 keeps qualities fixed.
            quality_threshold: alpha, the smallest mean quality that an agent's purchase may have, in [0, 1].
            unit_revenue: rho > 0, revenue of a good unit.
            regret_oracle: The oracle, given the true qualities, that regret is measured against: ``"exact"``, the
                integer optimum, or ``"greedy"``, the papers' Greedy SSA.
            violation: Regret of a round that violates the quality constraint: ``"max"``, the largest possible regret,
                or ``"optimum"``, the oracle's expected revenue.
            render_mode: None, ``"ansi"`` or ``"rgb_array"`` (needs matplotlib).

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._drift = require_number("drift", drift, 0, 1)
        self._threshold = require_number("quality_threshold", quality_threshold, 0, 1)
        self._unit_revenue = require_number("unit_revenue", unit_revenue, 0, np.inf, open_below=True)
        self._exact_regret = require_choice("regret_oracle", regret_oracle, ("exact", "greedy")) == "exact"
        self.approximate_oracle = not self._exact_regret
        self._violation = require_choice("violation", violation, ("max", "optimum"))
        self._market = rounds.make_market(market, num_agents, num_producers, quality_threshold)
        # One market is drawn to learn the numbers of agents and producers, which are the same in every market. Its
        # costs bound the space of observations: drawn costs are at most 1, and given ones are the same in every market.
        costs = self._market.draw(0).cost
        agents, producers = costs.shape
        most_units = self._market.max_capacity
        self._tabled = drift == 0.0 and most_units <= rounds.TABLED_CAPACITY
        each, units = (producers,), spaces.Box(0, most_units, (producers,), np.int32)
        super().__init__(
            num_agents=agents,
            max_cycles=max_cycles,
            observation={
                "quality_threshold": spaces.Box(0.0, 1.0, (1,), np.float64),
                "unit_revenue": spaces.Box(0.0, unit_revenue, (1,), np.float64),
                "cost": spaces.Box(0.0, max(1.0, float(costs.max())), each, np.float64),
                "capacity": units,
                "delivered": units,
                "good": units,
                "total_delivered": spaces.Box(0, MOST, each, np.int64),
                "total_good": spaces.Box(0, MOST, each, np.int64),
            },
            hidden={"quality": spaces.Box(0.0, 1.0, each, np.float64)},
            action_formats={
                "quantities": actions.Quantities(producers, most_units),
                "portions": Estimates(producers, actions.quantities_by_portions, low=0.0),
                "index": Estimates(producers, actions.quantities_by_quality, low=0.0),
            },
            instance_seed=instance_seed,
            render_mode=render_mode,
        )

    def _start(self, randomness: EpisodeRandomness, instance_seeds: Sequence[int]) -> None:
        markets = [self._market.draw(seed) for seed in instance_seeds]
        self._quality = np.stack([market.quality for market in markets])
        seen = self._observation
        seen["quality_threshold"].fill(self._threshold)
        seen["unit_revenue"].fill(self._unit_revenue)
        for replica, market in enumerate(markets):
            seen["cost"][replica], seen["capacity"][replica] = market.cost, market.capacity
        self._drifts = [stream(seed, Purpose.DRIFT) for seed in randomness.seeds]
        self._outcomes = randomness.draws(Purpose.OUTCOME)
        self._table = np.empty((*self._quality.shape, 0, 0), np.int16)
        if self._tabled:
            self._table = rounds.outcome_tables(self._quality, self._market.max_capacity)
        self._measure()

    def _measure(self) -> None:
        """Sets the oracle's revenue and the penalty, by which regret is measured, for the present qualities."""
        seen = self._observation
        quality = self._quality[:, np.newaxis]
        best = procure(quality, seen, exact=self._exact_regret)
        self._best_revenue = rounds.expected_revenue(best, self._quality, seen["cost"], self._unit_revenue)
        value = self._unit_revenue * quality - seen["cost"]
        worst = (seen["capacity"] * np.minimum(value, 0.0)).sum(axis=-1)
        self._penalty = self._best_revenue - (worst if self._violation == "max" else 0.0)

    def _play_round(self, action: Array) -> None:
        seen = self._observation
        rounds.play_round(
            self._active, action, *self._outcomes,
            self._quality, seen["cost"], seen["capacity"], self._table,
            self._threshold, self._unit_revenue, self._best_revenue, self._penalty,
            seen["delivered"], seen["good"], seen["total_delivered"], seen["total_good"],
            self._reward, self._info["regret"], self._info["violation"], self._info["excess"],
        )  # fmt: skip
        if self._drift > 0.0:
            # One step of a random walk reflected at 0 and 1, which does not depend on actions.
            producers = self._quality.shape[1]
            steps = np.stack([generator.standard_normal(producers) for generator in self._drifts])
            moved = np.abs(self._quality + self._drift * steps) % 2.0
            self._quality = np.where(moved > 1.0, 2.0 - moved, moved)
            self._measure()

    def _learn(self, action: Array, outcome: Any) -> None:
        """Adds delivered and good units; ``outcome`` has the good units of each producer, ``(producers,)``."""
        seen = self._observation
        for name, units in rounds.statistic(action[0, 0], outcome, seen["capacity"][0, 0]).items():
            seen[name][0, 0] = units
            seen[f"total_{name}"][0, 0] += units

    def _sensitivity(self) -> Sensitivity:
        return rounds.sensitivity(self._observation["capacity"])

    def _largest_reward(self) -> Array:
        cost, capacity = self._observation["cost"], self._observation["capacity"]
        # Largest reward: all units that earn more than they cost if good are bought, and all are good. Smallest reward:
        # all units are bought, and none is good.
        most, least = np.maximum(self._unit_revenue - cost, 0.0) * capacity, cost * capacity
        return np.maximum(most.sum(axis=-1), least.sum(axis=-1))

    def clairvoyant(self, observation: Arrays) -> Array:
        """Returns the oracle's quantities for the true qualities; see :meth:`.Problem.clairvoyant`."""
        return procure(self.hidden()["quality"], observation, exact=self._exact_regret)

    def _hidden(self) -> Arrays:
        shape = self._observation["cost"].shape
        return {"quality": np.broadcast_to(self._quality[:, np.newaxis], shape).copy()}
