"""P-FCB and FCB: SS-UCB on own and received data (Solanki et al. 2022, Algorithms 1 and 2).

The policy defines how an agent uses the messages that it receives; the wrappers Channel and privatizer determine when
agents send, and with how much noise. Without a channel the policy is SS-UCB.
"""

from math import log
from typing import Any, Literal, get_args

import numpy as np

from fedbandit_envs.baselines.aggregators import AggregatorSpec, Sum, make_aggregator
from fedbandit_envs.baselines.aggregators.precision import count_inbox
from fedbandit_envs.baselines.procurement.silent import SSUCB
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_flag, require_number
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.core.policy_spec import PolicySpec

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
        sent_units: Reported units w, ``(replicas, agents, senders, producers)``.
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
            factor = omega1 * omega1 * 1.5 * np.log(num_senders * round_[r, j, 0])
            weights[:] = received_units[r, j]
            goods[:] = received_good[r, j]
            for s in range(num_senders):
                for i in range(producers):
                    accepted[r, j, s, i] = False
                    w, y = sent_units[r, j, s, i], sent_good[r, j, s, i]
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
    """P-FCB: SS-UCB whose estimates of qualities include the units that other agents report.

    An agent estimates the quality of a producer as Y / W, from W known units of which Y were good. A report of another
    agent, w units of which y were good, is accepted in round t by one of n agents if ``|y / w - Y / W| <= omega1
    sqrt(3 ln(n t) / (2 W))``; then ``W += omega2 w`` and ``Y += omega2 y`` (Procedure 1). With noisy messages the
    printed procedure diverges, since w may be negative or tiny. The guards refuse w <= 0 and y outside [0, w], and skip
    the comparison while W = 0, so that W stays positive and Y / W a probability. With ``check=False`` and exact
    messages this is FCB.

    An aggregator (``pool``) combines the accepted reports. With the aggregator ``sum``, the reports of a round are
    compared one after the other, each with the estimate that includes the accepted ones before it, as printed. With
    other aggregators all reports of a round are compared with the estimate from before that round, so that a dishonest
    first sender cannot have the others refused. ``precision`` counts each report as the number of exact units that are
    as informative; it is meant for ``check=False, guards=False, omega2=1``, and
    :mod:`fedbandit_envs.baselines.aggregators.precision` describes how far the confidence radius then holds.

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
        self._pool = make_aggregator(pool)

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
        if inbox is not None:
            self._received = self._pool.start(count_inbox(spec, seeds.shape, "delivered", "good"))
            self._received_units, self._received_good = self._received.totals.values()
        self._accepted = np.zeros((*seeds.shape, senders, self._received_units.shape[-1]), np.bool_)

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``, after adding newly received reports.

        See :meth:`Policy.act`.
        """
        mask = observation.get("inbox_mask")
        if mask is not None and mask.any():
            own = {name: observation[f"total_{name}"] for name in ("delivered", "good")}
            _accept(
                mask, observation["inbox_delivered"], observation["inbox_good"], observation["round"], *own.values(),
                self._received_units, self._received_good, self._check, self._guards, self._omega1, self._omega2,
                isinstance(self._pool, Sum), self._accepted,
            )  # fmt: skip
            self._received.add(observation, self._accepted, own, self._omega2)
        return super().act(observation)
