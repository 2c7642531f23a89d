"""Procurement policies that use own data only: placebos, the clairvoyant, and SS-UCB."""

from math import ceil, log
from typing import Literal, get_args

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_integer, require_number
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.procurement.oracle import procure, procure_row
from fedbandit_envs.randomness.draws import Draws
from fedbandit_envs.randomness.threefry import padded

OracleName = Literal["greedy", "exact"]


class UniformRandom:
    """Asks each producer for a uniformly random number of units between 0 and its capacity.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement import UniformRandom
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = UniformRandom()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Stores one seed a row; see :meth:`Policy.reset`."""
        self._seeds = seeds

    def act(self, observation: Arrays) -> Array:
        """Draws quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        capacity = observation["capacity"]
        drawn = Draws.of_policy(self._seeds, observation["round"]).uniforms(capacity.shape[2])
        return (drawn * (capacity + 1)).astype(np.int32)


class OneOfEach:
    """Procures one unit from each producer that the agent has access to, in every round.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement import OneOfEach
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = OneOfEach()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Has nothing to forget; see :meth:`Policy.reset`."""

    def act(self, observation: Arrays) -> Array:
        """Returns ones, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        return np.minimum(observation["capacity"], 1)


class Clairvoyant:
    """Procures the quantities that are best for the true qualities (or those of Greedy SSA).

    They must be in its observation: see :class:`~fedbandit_envs.wrappers.reveal.Reveal`.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement import Clairvoyant
        >>> from fedbandit_envs.wrappers import Reveal
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> env = Reveal(env)
        >>> policy = Clairvoyant()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def __init__(self, oracle: OracleName = "exact") -> None:
        """Chooses the oracle.

        Args:
            oracle: ``"exact"`` (integer optimum) or ``"greedy"`` (Greedy SSA).
        """
        self._exact = require_choice("oracle", oracle, get_args(OracleName)) == "exact"

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks that qualities are revealed; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The observation has no ``quality``.
        """
        if "quality" not in spec.observation.spaces:
            raise UnfitError("the observation has no 'quality'; wrap the environment in Reveal")

    def act(self, observation: Arrays) -> Array:
        """Returns the oracle's quantities; see :meth:`Policy.act`."""
        return procure(observation["quality"], observation, exact=self._exact)


@kernel
def _upper_confidence_bounds(weight, sum_, factor):
    """Overwrites sums Y with ``min(1, Y / W + sqrt(factor / W))``, and with 1 where W <= 0."""
    for i in range(sum_.shape[0]):
        known = weight[i] > 0.0
        inverse = 1.0 / (weight[i] if known else 1.0)
        index = sum_[i] * inverse + np.sqrt(factor * inverse)
        sum_[i] = min(index, 1.0) if known else 1.0


@kernel
def _procure_optimistically(
    active, round_, units, good, received_units, received_good, cost, capacity, threshold, unit_revenue,
    exploration, radius_scale, log_agents, divisor, margin, exact, quantity,
):  # fmt: skip
    """Procures as if upper confidence bounds were the true qualities, for all active rows.

    Args:
        active: Rows that act, bool ``(replicas, agents, 1)``; the others keep their last quantities.
        round_: Rounds in which the agent has acted, ``(replicas, agents, 1)``; t is one more.
        units: Own units so far, ``(replicas, agents, producers)``.
        good: Good units among them.
        received_units: Weight of the units that others reported, same shape; of size 0 for a policy without
            communication.
        received_good: Weight of the good ones among them.
        cost: Costs.
        capacity: Capacities.
        threshold: Quality threshold, ``(replicas, agents, 1)``.
        unit_revenue: Revenue of a good unit, same shape.
        exploration: Number of first rounds in which one unit is procured from each producer.
        radius_scale: Factor of the radius ``sqrt(3 (ln t + log_agents) / (2 divisor W))``.
        log_agents: See ``radius_scale``.
        divisor: See ``radius_scale``.
        margin: Added to the threshold.
        exact: Whether the oracle is the exact one.
        quantity: Receives the quantities, ``(replicas, agents, producers)``.
    """
    producers = quantity.shape[2]
    # Sums of own and received data; padded, so that processors need not finish a row one by one.
    weight, bound = np.zeros(padded(producers)), np.zeros(padded(producers))
    surpluses = np.empty(producers)
    scale = radius_scale * radius_scale * 1.5 / divisor
    receives = received_units.size > 0
    last, log_round = -1, 0.0
    for r in range(quantity.shape[0]):
        for j in range(quantity.shape[1]):
            if not active[r, j, 0]:
                continue
            now = round_[r, j, 0]
            if now < exploration:
                for i in range(producers):
                    quantity[r, j, i] = min(1, capacity[r, j, i])
                continue
            if now != last:
                last, log_round = now, np.log(now + 1.0)
            for i in range(producers):
                weight[i], bound[i] = units[r, j, i], good[r, j, i]
            if receives:
                for i in range(producers):
                    weight[i] += received_units[r, j, i]
                    bound[i] += received_good[r, j, i]
            _upper_confidence_bounds(weight, bound, scale * (log_round + log_agents))
            procure_row(
                r, j, bound, cost, capacity, threshold[r, j, 0] + margin, unit_revenue[r, j, 0], exact, quantity,
                surpluses,
            )  # fmt: skip


class SSUCB:
    """SS-UCB: optimism about producers' qualities, then the oracle (Deva et al. 2021; a baseline of the P-FCB paper).

    In round t a producer with W_i delivered units, Y_i of them good, has the index ``min(1, Y_i / W_i + radius_scale
    sqrt(3 ln t / (2 W_i)))``, or 1 while W_i = 0.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement import SSUCB
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = SSUCB(radius_scale=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        exploration_rounds: int = 1,
        zeta: float | None = None,
        radius_scale: float = 1.0,
        margin: float = 0.0,
        oracle: OracleName = "greedy",
    ) -> None:
        """Sets the policy's constants.

        Args:
            exploration_rounds: Number of first rounds with one unit from each producer.
            zeta: The papers' separation; where given, exploration lasts ceil(3 ln T / (2 zeta^2)) rounds instead.
            radius_scale: Factor of the confidence radius; 1 is the papers'.
            margin: Added to the quality threshold that the oracle keeps.
            oracle: ``"greedy"`` (the papers' Greedy SSA), or ``"exact"``, the integer optimum (DPSS).

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._exploration_rounds = require_integer("exploration_rounds", exploration_rounds, 0)
        self._radius_scale = require_number("radius_scale", radius_scale, 0, np.inf)
        self._margin = require_number("margin", margin, -1, 1)
        self._exact = require_choice("oracle", oracle, get_args(OracleName)) == "exact"
        self._zeta = None if zeta is None else require_number("zeta", zeta, 0, np.inf, open_below=True)
        self._log_agents = 0.0
        self._divisor = 1.0

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Starts the exploration; see :meth:`Policy.reset`."""
        self._exploration = (
            self._exploration_rounds
            if self._zeta is None
            else ceil(3.0 * log(spec.horizon) / (2.0 * self._zeta**2))
        )
        # The action space would not do: it is a Dict where agents choose when to send.
        shape = (*seeds.shape, *(spec.observation["capacity"].shape or ()))
        self._quantity = np.zeros(shape, np.int32)
        self._everyone = np.ones((*seeds.shape, 1), np.bool_)
        # Reports of others on their purchases: this policy has none.
        self._received_units, self._received_good = np.zeros((2, 0, 0, 0))

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        _procure_optimistically(
            observation.get("active", self._everyone), observation.get("own_round", observation["round"]),
            observation["total_delivered"], observation["total_good"],
            self._received_units, self._received_good, observation["cost"], observation["capacity"],
            observation["quality_threshold"], observation["unit_revenue"],
            self._exploration, self._radius_scale, self._log_agents, self._divisor, self._margin, self._exact,
            self._quantity,
        )  # fmt: skip
        return self._quantity
