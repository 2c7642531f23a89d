"""Policies for the procurement problem, in which agents buy units of unknown quality from producers.

Agents act alone, or on own and received data (P-FCB and FCB: Solanki et al. 2022, Algorithms 1 and 2). These policies
define how an agent uses the messages that it receives; the wrappers Channel and privatizer determine when agents send,
and with how much noise. Without a channel P-FCB is SS-UCB.
"""

from math import log
from typing import Any, Literal, get_args

import numpy as np

from fedbandit_envs.baselines.aggregators import (
    AggregatorSpec,
    KnownCounts,
    Sum,
    count_inbox,
    make_aggregator,
)
from fedbandit_envs.baselines.arms.kernels import arm_keys, draw_posteriors
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays, everyone, stored
from fedbandit_envs.basics.checks import require_choice, require_flag, require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.procurement.oracle import buy, procure
from fedbandit_envs.randomness.draws import Draws

OracleName = Literal["greedy", "exact"]


class UniformRandom:
    """Procures from each producer a uniformly random number of units between 0 and its capacity.

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
        """Stores the seed of each agent; see :meth:`Policy.reset`."""
        self._seeds = seeds

    def act(self, observation: Arrays) -> Array:
        """Returns random quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
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
        """Does nothing, since the policy has no state; see :meth:`Policy.reset`."""

    def act(self, observation: Arrays) -> Array:
        """Returns 1 for each producer with capacity, else 0, int32 ``(replicas, agents, producers)``.

        See :meth:`Policy.act`.
        """
        return np.minimum(observation["capacity"], 1)


class Clairvoyant:
    """Procures the quantities that are optimal for the true qualities, or those that Greedy SSA finds for them.

    The true qualities must be in its observation, where :class:`~fedbandit_envs.wrappers.observation.Reveal` puts them.

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
        """Sets the oracle, the algorithm that computes quantities from qualities.

        Args:
            oracle: ``"exact"`` (integer optimum) or ``"greedy"`` (Greedy SSA).
        """
        self._exact = require_choice("oracle", oracle, get_args(OracleName)) == "exact"

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks that the observation contains the true qualities; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The observation has no ``quality``.
        """
        if "quality" not in spec.observation.spaces:
            raise UnfitError("the observation has no 'quality'; wrap the environment in Reveal")

    def act(self, observation: Arrays) -> Array:
        """Returns the oracle's quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        return procure(observation["quality"], observation, exact=self._exact)


@kernel
def _lower(rows, units, good, quantity, margin, sure):
    """Writes posterior means of qualities less ``margin`` standard deviations of the mean quality of the last units.

    The posteriors are Beta(1 + good units, 1 + defective units). See :class:`QualityIndex`; the margin is 0 for an
    agent that has bought nothing in the last round.

    Args:
        rows: Agents that act, bool ``(replicas, agents)``.
        units: Known units, ``(replicas, agents, producers)``.
        good: Good units among them, same shape.
        quantity: Quantities of the last round, same shape.
        margin: Number of standard deviations.
        sure: Receives the lowered means, same shape.
    """
    for r in range(sure.shape[0]):
        for j in range(sure.shape[1]):
            if not rows[r, j]:
                continue
            bought, variance = 0.0, 0.0
            for i in range(sure.shape[2]):
                mean = (good[r, j, i] + 1.0) / (units[r, j, i] + 2.0)
                sure[r, j, i] = mean
                bought += quantity[r, j, i]
                variance += quantity[r, j, i] ** 2 * (mean * (1.0 - mean) / (units[r, j, i] + 3.0))
            shift = margin * np.sqrt(variance) / bought if bought > 0.0 else 0.0
            for i in range(sure.shape[2]):
                sure[r, j, i] -= shift


class QualityIndex:
    """The base class of policies that procure as if an index of each producer were its true quality.

    The index follows from known units: the agent's own ones and, with an aggregator (``pool``), those that others
    report. An oracle computes the best quantities. By default the quality constraint, too, is kept for the indices.

    With a ``margin`` the agent is optimistic about revenue and cautious about the constraint. The constraint is then
    kept for posterior means of qualities, under uniform priors, with a mean quality that is higher than the threshold
    by ``margin`` standard deviations. The standard deviation is that of the mean true quality of the units bought in
    the last round, given the known units. So the margin shrinks as the agent learns.

    A new index overrides :meth:`index`.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement import QualityIndex
        >>> class Means(QualityIndex):
        ...     def index(self, observation, units, good, out):
        ...         out[...] = (good + 1) / (units + 2)
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = Means(margin=2.0)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def __init__(
        self, margin: float = 0.0, oracle: OracleName = "greedy", pool: AggregatorSpec | None = None
    ) -> None:
        """Sets the margin, the oracle and the use of messages.

        Args:
            margin: Number of standard deviations by which the constraint is kept with a margin, >= 0; with 0 the
                constraint is kept for the indices.
            oracle: ``"greedy"`` (the papers' Greedy SSA), or ``"exact"``, the integer optimum (DPSS).
            pool: The aggregator of received units, or its specification; see
                :mod:`fedbandit_envs.baselines.aggregators`. None ignores messages.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._margin = require_number("margin", margin, 0, np.inf)
        self._exact = require_choice("oracle", oracle, get_args(OracleName)) == "exact"
        self._pool = None if pool is None else make_aggregator(pool)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The aggregator does not fit the messages that agents receive.
        """
        # The shape is taken from the observation: the action space is a Dict where agents choose when to send.
        shape = (*seeds.shape, *(spec.observation["capacity"].shape or ()))
        self._quantity = np.zeros(shape, np.int32)
        self._index, self._rows = np.zeros(shape), np.zeros(seeds.shape, np.bool_)
        self._sure = np.zeros(shape) if self._margin else self._index
        self._everyone = everyone(*seeds.shape, 1)
        self._known = KnownCounts(self._pool, spec, seeds.shape, "delivered", "good")

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        self._rows[...] = observation.get("active", self._everyone)[..., 0]
        units, good = self._counts(observation)
        self.index(observation, units, good, self._index)
        if self._margin:
            _lower(self._rows, units, good, self._quantity, self._margin, self._sure)
        buy(
            self._rows, self._index, self._sure, observation["cost"], observation["capacity"],
            observation["quality_threshold"], observation["unit_revenue"], self._exact, self._quantity,
        )  # fmt: skip
        return self._quantity

    def index(self, observation: Arrays, units: Array, good: Array, out: Array) -> None:
        """Writes an index in [0, 1] of each producer's quality.

        Args:
            observation: Arrays of the observation by name.
            units: Known units, ``(replicas, agents, producers)``.
            good: Good units among them, same shape.
            out: Receives the indices, float64, same shape.
        """
        raise NotImplementedError

    def _counts(self, observation: Arrays) -> tuple[Array, Array]:
        """Returns the numbers of known units and of good ones among them, with newly received reports."""
        self._known.update(observation)
        return self._known.trials, self._known.successes


@kernel
def _upper_confidence_bounds(
    active, round_, units, good, received_units, received_good, capacity,
    exploration, radius_scale, log_agents, divisor, quantity, bound, bounded,
):  # fmt: skip
    """Writes the quantities of agents that explore, and upper confidence bounds of the qualities for other active ones.

    A producer with W units, Y of them good, has the bound ``min(1, Y / W + radius)``, or 1 where W <= 0.

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others keep their last quantities.
        round_: Number of rounds in which the agent has acted, ``(replicas, agents, 1)``; the round t is one more.
        units: Known units, ``(replicas, agents, producers)``.
        good: Good units among them, same shape.
        received_units: Units that are added to them, same shape; an empty array for none.
        received_good: Good units among these, same shape.
        capacity: Largest quantity of each producer, same shape as ``units``.
        exploration: Number of first rounds in which one unit is procured from each producer.
        radius_scale: Factor of the radius ``sqrt(3 (ln t + log_agents) / (2 divisor W))``.
        log_agents: Summand in the radius; 0, or the logarithm of the number of agents.
        divisor: Divisor in the radius; 1, or the number of agents.
        quantity: Receives the quantities of agents that explore, ``(replicas, agents, producers)``.
        bound: Receives the bounds, same shape.
        bounded: Receives which agents have bounds, bool ``(replicas, agents)``.
    """
    producers = quantity.shape[2]
    scale = radius_scale * radius_scale * 1.5 / divisor
    receives = received_units.size > 0
    last, log_round = -1, 0.0
    for r in range(quantity.shape[0]):
        for j in range(quantity.shape[1]):
            now = round_[r, j, 0]
            bounded[r, j] = active[r, j, 0] and now >= exploration
            if active[r, j, 0] and now < exploration:
                for i in range(producers):
                    quantity[r, j, i] = min(1, capacity[r, j, i])
            if not bounded[r, j]:
                continue
            if now != last:
                last, log_round = now, np.log(now + 1.0)
            factor = scale * (log_round + log_agents)
            for i in range(producers):
                weight, total = np.float64(units[r, j, i]), np.float64(good[r, j, i])
                if receives:
                    weight += received_units[r, j, i]
                    total += received_good[r, j, i]
                known = weight > 0.0
                inverse = 1.0 / (weight if known else 1.0)
                index = total * inverse + np.sqrt(factor * inverse)
                bound[r, j, i] = min(index, 1.0) if known else 1.0


class SSUCB(QualityIndex):
    r"""SS-UCB: procures the best quantities as if upper confidence bounds were the true qualities (Deva et al. 2021).

    In round $t$ a producer $i$ with $W_i$ known units, $Y_i$ of them good, has the bound

    $$u_i = \min ( 1, \; Y_i / W_i + c \sqrt{3 \ln t / (2 W_i)} )$$

    with $c$ for ``radius_scale``, or 1 while $W_i = 0$. The agent buys the quantities $l_i$, up to capacities, with the
    largest revenue $\sum_i l_i (\rho u_i - c_i)$ under the constraint $\sum_i l_i u_i \ge \alpha \sum_i l_i$; Greedy
    SSA computes them. An agent that receives counts adds them to $W_i$ and $Y_i$, as ``pool`` weighs them. The P-FCB
    paper uses SS-UCB as a baseline.

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
        radius_scale: float = 1.0,
        **quality_index: Any,
    ) -> None:
        """Sets the policy's constants; see :class:`QualityIndex` for those not named here.

        Args:
            exploration_rounds: Number of first rounds with one unit from each producer.
            radius_scale: Factor of the confidence radius; the papers use 1.
            **quality_index: Constants of :class:`QualityIndex`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(**quality_index)
        self._exploration_rounds = require_integer("exploration_rounds", exploration_rounds, 0)
        self._radius_scale = require_number("radius_scale", radius_scale, 0, np.inf)
        self._log_agents = 0.0
        self._divisor = 1.0
        # Units that PFCB adds to known ones in the kernel, which is faster than before it.
        self._received = tuple(np.zeros((2, 0, 0, 0)))

    def index(self, observation: Arrays, units: Array, good: Array, out: Array) -> None:
        """Writes upper confidence bounds, or quantities of agents that explore; see :meth:`QualityIndex.index`."""
        _upper_confidence_bounds(
            observation.get("active", self._everyone), observation.get("own_round", observation["round"]),
            units, good, *self._received, observation["capacity"],
            self._exploration_rounds, self._radius_scale, self._log_agents, self._divisor,
            self._quantity, out, self._rows,
        )  # fmt: skip


class LaplaceIndex(QualityIndex):
    r"""Procures by Greedy SSA (Deva et al. 2021) as if an index of each producer were its true quality.

    The index is Laplace's estimate plus a bonus that does not depend on the round. For a producer with $W_i$ known
    units, $Y_i$ of them good, and $b$ for ``width`` it is

    $$u_i = \min \left( 1, \; \frac{Y_i + 1}{W_i + 2} + \frac{b}{\sqrt{W_i + 1}} \right)$$

    The agent buys the quantities $l_i$, up to capacities, with the largest revenue $\sum_i l_i (\rho u_i - c_i)$ under
    the constraint $\sum_i l_i u_i \ge \alpha \sum_i l_i$.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement import LaplaceIndex
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = LaplaceIndex(width=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def __init__(self, width: float = 0.8, **quality_index: Any) -> None:
        """Sets the policy's constants; see :class:`QualityIndex` for those not named here.

        Args:
            width: Factor of the bonus, >= 0; 0 means no exploration.
            **quality_index: Constants of :class:`QualityIndex`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(**quality_index)
        self._width = require_number("width", width, 0, np.inf)

    def index(self, observation: Arrays, units: Array, good: Array, out: Array) -> None:
        """Writes Laplace's estimates with the bonus, at most 1; see :meth:`QualityIndex.index`."""
        np.minimum((good + 1.0) / (units + 2.0) + self._width / np.sqrt(units + 1.0), 1.0, out=out)


class ThompsonProcurement(QualityIndex):
    r"""Thompson sampling: procures by Greedy SSA as if draws from posteriors were the true qualities (Thompson 1933).

    For a producer with $W_i$ known units, $Y_i$ of them good, $u_i$ is drawn from
    $\text{Beta}(1 + Y_i, \, 1 + W_i - Y_i)$. The agent buys the quantities $l_i$, up to capacities, with the largest
    revenue $\sum_i l_i (\rho u_i - c_i)$ under the constraint $\sum_i l_i u_i \ge \alpha \sum_i l_i$. With a margin the
    constraint is kept for posterior means in place of draws, and for a higher threshold (:class:`QualityIndex`). An
    agent that receives counts adds them to $W_i$ and $Y_i$, as ``pool`` weighs them.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement import ThompsonProcurement
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = ThompsonProcurement()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Stores for each producer of each agent the key of its random numbers; see :meth:`QualityIndex.reset`."""
        super().reset(spec, seeds)
        self._keys = arm_keys(seeds, self._index.shape[2])

    def index(self, observation: Arrays, units: Array, good: Array, out: Array) -> None:
        """Writes a draw from each posterior; see :meth:`QualityIndex.index`."""
        rows = (-1, out.shape[2])
        known = (array.reshape(rows) for array in (units, good))
        draw_posteriors(
            self._keys.reshape(*rows, 2), observation["round"].reshape(-1), *known, out.reshape(rows)
        )


RadiusName = Literal["own", "federated", "printed"]


@allocating_kernel
def _accept(
    mask, sent_units, sent_good, round_, units, good, received_units, received_good,
    check, guards, omega1, omega2, in_turn, accepted,
):  # fmt: skip
    """Marks the reports that the paper's CheckandUpdate (Procedure 1) accepts, for each sender and producer.

    A message reports, for each producer, w units of which y were good.

    Args:
        mask: Which messages have arrived, bool ``(replicas, agents, senders)``.
        sent_units: Reported units w as stored, ``(replicas, agents or 1, senders, producers)``.
        sent_good: Reported good units y, same shape.
        round_: Number of rounds played, ``(replicas, agents, 1)``.
        units: Units delivered to the agent itself so far, ``(replicas, agents, producers)``.
        good: Good units among them, same shape.
        received_units: Aggregate of the reported units accepted in earlier rounds, same shape.
        received_good: Aggregate of the reported good units accepted in earlier rounds, same shape.
        check: Whether reports are compared with the agent's own estimate of the quality.
        guards: Whether impossible reports (w <= 0, or y outside [0, w]) are refused.
        omega1: Factor of the width of the interval around the estimate in which y / w is accepted.
        omega2: Weight of accepted reports against own data.
        in_turn: Whether an accepted report enters the estimate before the next sender's is compared with it.
        accepted: Receives the marks, bool ``(replicas, agents, senders, producers)``.
    """
    num_senders, producers = sent_units.shape[2:]
    weights, goods = np.empty(producers), np.empty(producers)
    for r in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            row = min(j, sent_units.shape[1] - 1)
            factor = omega1 * omega1 * 1.5 * np.log(num_senders * round_[r, j, 0])
            weights[:] = received_units[r, j]
            goods[:] = received_good[r, j]
            for s in range(num_senders):
                for i in range(producers):
                    accepted[r, j, s, i] = False
                    w, y = sent_units[r, row, s, i], sent_good[r, row, s, i]
                    if not mask[r, j, s] or (guards and not (w > 0.0 and 0.0 <= y <= w)):
                        continue
                    weight = units[r, j, i] + weights[i]
                    if check and (weight != 0.0 or not guards):
                        estimate = (good[r, j, i] + goods[i]) / weight
                        # Comparisons with a NaN are false; with "not" a NaN is refused.
                        if not abs(y / w - estimate) <= np.sqrt(factor / weight):
                            continue
                    accepted[r, j, s, i] = True
                    if in_turn:
                        weights[i] += omega2 * w
                        goods[i] += omega2 * y


class PFCB(SSUCB):
    r"""P-FCB: SS-UCB whose estimates of qualities include the units that other agents report.

    An agent estimates the quality of producer $i$ as $Y_i / W_i$, from $W_i$ known units of which $Y_i$ were good. In
    round $t$ one of $n$ agents accepts the report of another one, $w$ units of which $y$ were good, if (Procedure 1)

    $$| y / w - Y_i / W_i | \le \omega_1 \sqrt{3 \ln(n t) / (2 W_i)}$$

    Then it adds $\omega_2 w$ to $W_i$ and $\omega_2 y$ to $Y_i$. It buys as if the quality were

    $$u_i = \min ( 1, \; Y_i / W_i + \sqrt{3 \ln t / (2 W_i)} )$$

    that is the quantities $l_i$, up to capacities, with the largest revenue $\sum_i l_i (\rho u_i - c_i)$ under the
    constraint $\sum_i l_i u_i \ge \alpha \sum_i l_i$.

    With noisy messages the printed procedure diverges, since $w$ may be negative or tiny. The guards refuse $w \le 0$
    and $y$ outside $[0, w]$, and skip the comparison while $W_i = 0$, so that $W_i$ stays positive and $Y_i / W_i$ a
    probability. With ``check=False`` and exact messages this is FCB.

    An aggregator (``pool``) combines the accepted reports. With the aggregator ``sum``, the reports of a round are
    compared one after the other, each with the estimate that includes the accepted ones before it, as printed. With
    other aggregators all reports of a round are compared with the estimate from before that round, so that a dishonest
    first sender cannot have the others refused. A margin (:class:`QualityIndex`) follows from the agent's own units.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.procurement import PFCB
        >>> from fedbandit_envs.wrappers import Channel
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> env = Channel(env, schedule="doubling")
        >>> policy = PFCB(omega2=1.0)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        omega1: float = 0.1,
        omega2: float = 10.0,
        check: bool = True,
        guards: bool = True,
        radius: RadiusName = "own",
        pool: AggregatorSpec = "sum",
        **ss_ucb: Any,
    ) -> None:
        """Sets the policy's constants; see :class:`SSUCB` for those not named here.

        Args:
            omega1: Factor of the width of the acceptance interval. The default is that of the paper's experiments; the
                paper's discussion swaps omega1 and omega2.
            omega2: Weight of accepted reports against own data; the paper's text asks for at most 1, its experiments
                use 10.
            check: Whether reports are compared with the agent's own estimate.
            guards: Whether impossible reports are refused; False is the procedure as printed.
            radius: Radius of the confidence bound with W known units in round t, for n agents: ``"own"`` is
                ``sqrt(3 ln t / (2 W))`` (SS-UCB's), ``"federated"`` is ``sqrt(3 ln(n t) / (2 W))`` (Algorithm 1 with
                the federation's number of units as W), and ``"printed"`` is ``sqrt(3 ln(n t) / (2 n W))`` (Algorithm 1
                as printed, which divides by n twice and loses coverage).
            pool: The aggregator of accepted reports, or its specification; see
                :mod:`fedbandit_envs.baselines.aggregators`.
            **ss_ucb: Constants of :class:`SSUCB`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(**ss_ucb)
        self._omega1 = require_number("omega1", omega1, 0, np.inf)
        self._omega2 = require_number("omega2", omega2, 0, np.inf)
        self._radius = require_choice("radius", radius, get_args(RadiusName))
        self._check = require_flag("check", check)
        self._guards = require_flag("guards", guards)
        self._accepted_pool = make_aggregator(pool)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets received reports and prepares for an episode; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Agents receive their own messages, which the aggregator (``precision``) would count twice.
        """
        super().reset(spec, seeds)
        inbox = spec.observation.spaces.get("inbox_mask")
        # A server's inbox has a single sender, whose sums are those of all agents.
        senders, num_agents = (1, 1) if inbox is None else ((inbox.shape or (1,))[0], spec.agents)
        self._log_agents = 0.0 if self._radius == "own" else log(num_agents)
        self._divisor = float(num_agents) if self._radius == "printed" else 1.0
        self._accepted = np.zeros((*seeds.shape, senders, self._index.shape[2]), np.bool_)
        self._reports: Any = None
        if inbox is not None:
            self._reports = self._accepted_pool.start(count_inbox(spec, seeds.shape, "delivered", "good"))
            self._received = tuple(self._reports.totals.values())

    def _counts(self, observation: Arrays) -> tuple[Array, Array]:
        units, good = super()._counts(observation)
        if self._reports is not None and (mask := observation["inbox_mask"]).any():
            sent = (stored(observation[f"inbox_{name}"]) for name in ("delivered", "good"))
            _accept(
                mask, *sent, observation["round"], units, good, *self._received, self._check, self._guards,
                self._omega1, self._omega2, isinstance(self._accepted_pool, Sum), self._accepted,
            )  # fmt: skip
            own = {"delivered": units, "good": good}
            self._reports.add(observation, self._accepted, own, self._omega2)
        return units, good


PEERS = SSUCB
"""The policy of a learner's peers, unless the learner's environment is told another."""
