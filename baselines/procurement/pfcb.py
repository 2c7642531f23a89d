"""P-FCB and FCB: SS-UCB that listens (Solanki et al. 2022, Algorithms 1 and 2).

The policy says what an agent makes of what it hears; when agents talk and through how much noise is up to the
channel and the privatizer it runs behind. Without a channel it is SS-UCB.
"""

from math import log
from typing import Literal, get_args

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.pool import PoolSpec, make_pool
from fedbandit_envs.baselines.procurement.silent import SSUCB, OracleName
from fedbandit_envs.checks import require_choice, require_number
from fedbandit_envs.compiled import kernel
from fedbandit_envs.spaces import Spaces

RadiusName = Literal["own", "federated", "printed"]


@kernel
def _accept(
    mask, told_units, told_good, round_, units, good, heard_units, heard_good,
    check, guards, omega1, omega2, in_turn, accepted,
):  # fmt: skip
    """CheckandUpdate (Procedure 1) without the update, for every receiver, sender by sender, producer by producer.

    Args:
        mask: From whom something arrived, ``(replicas, agents, senders)``.
        told_units: w, ``(replicas, agents, senders, producers)``.
        told_good: y, same shape.
        round_: Rounds played, ``(replicas, agents, 1)``.
        units: Own units so far, ``(replicas, agents, producers)``.
        good: Good ones among them.
        heard_units: What was made of all that was accepted before, same shape.
        heard_good: Likewise.
        check: Whether messages are compared with the own estimate.
        guards: Whether impossible messages are refused.
        omega1: Width of the acceptance interval.
        omega2: Weight of what is accepted.
        in_turn: Whether the estimate takes in what is accepted of one sender before the next is compared with it.
        accepted: Receives what is, ``(replicas, agents, senders, producers)``.
    """
    num_senders, producers = told_units.shape[2:]
    weights, goods = np.empty(producers), np.empty(producers)
    for r in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            factor = omega1 * omega1 * 1.5 * np.log(num_senders * round_[r, j, 0])
            weights[:] = heard_units[r, j]
            goods[:] = heard_good[r, j]
            for s in range(num_senders):
                for i in range(producers):
                    accepted[r, j, s, i] = False
                    w, y = told_units[r, j, s, i], told_good[r, j, s, i]
                    if not mask[r, j, s] or (guards and not (w > 0.0 and 0.0 <= y <= w)):
                        continue
                    weight = units[r, j, i] + weights[i]
                    if check and (weight != 0.0 or not guards):
                        estimate = (good[r, j, i] + goods[i]) / weight
                        # Written so that a NaN is refused, as "lies in the interval" would.
                        if not abs(y / w - estimate) <= np.sqrt(factor / weight):
                            continue
                    accepted[r, j, s, i] = True
                    if in_turn:
                        weights[i] += omega2 * w
                        goods[i] += omega2 * y


class PFCB(SSUCB):
    """SS-UCB whose estimates take in what other agents tell.

    A message (w, y) about a producer is accepted if ``|y / w - Y / W| <= omega1 sqrt(3 ln(n t) / (2 W))``, and then
    ``W += omega2 w``, ``Y += omega2 y`` (Procedure 1). With noisy messages the printed procedure diverges: w may be
    negative or tiny. The guards refuse w <= 0 and y outside [0, w], and skip the comparison while W = 0; so W stays
    positive and Y / W a probability. With ``check=False`` and true messages this is FCB.

    What is accepted is put together by a ``pool``. With the sum, messages are
    compared in turn, each with the estimate that has taken in the one before, as printed; with another pool all of a
    round are compared with the estimate from before, so that no liar who comes first has others refused. ``precision``
    makes of each message as many units as it is worth, and is meant for ``check=False, guards=False, omega2=1``: what
    its noise leaves nothing of counts for nothing. W is then own units and those, and the radius is as good as
    :mod:`fedbandit_envs.baselines.precision` says.
    """

    def __init__(
        self,
        omega1: float = 0.1,
        omega2: float = 10.0,
        check: bool = True,
        guards: bool = True,
        radius: RadiusName = "own",
        exploration_rounds: int = 1,
        zeta: float | None = None,
        radius_scale: float = 1.0,
        margin: float = 0.0,
        oracle: OracleName = "greedy",
        pool: PoolSpec = "sum",
    ) -> None:
        """Sets the policy's constants; see :class:`SSUCB` for those not named here.

        Args:
            omega1: Width of the acceptance interval. The experiments' value; the paper's discussion has it and
                the next one swapped.
            omega2: Weight of what is accepted against own data; the text asks for at most 1, the experiments use 10.
            check: Whether messages are compared with the own estimate at all.
            guards: Whether impossible messages are refused; false shows the procedure as printed.
            radius: Radius of the confidence bound: ``"own"`` is ``sqrt(3 ln t / (2 W))`` (SS-UCB's), ``"federated"``
                ``sqrt(3 ln(n t) / (2 W))`` (Algorithm 1 with W the federation's count), ``"printed"``
                ``sqrt(3 ln(n t) / (2 n W))`` (Algorithm 1 as printed, which divides by n twice and loses coverage).
            exploration_rounds: See :class:`SSUCB`.
            zeta: See :class:`SSUCB`.
            radius_scale: See :class:`SSUCB`.
            margin: See :class:`SSUCB`.
            oracle: See :class:`SSUCB`.
            pool: How what is accepted is put together, see :mod:`fedbandit_envs.baselines.pool`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(exploration_rounds, zeta, radius_scale, margin, oracle)
        require_number("omega1", omega1, 0, np.inf)
        require_number("omega2", omega2, 0, np.inf)
        require_choice("radius", radius, get_args(RadiusName))
        self._omega1 = float(omega1)
        self._omega2 = float(omega2)
        self._check = bool(check)
        self._guards = bool(guards)
        self._radius = radius
        self._pool = make_pool(pool)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets what was heard; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The pool keeps own data exact, and agents hear themselves.
        """
        super().reset(spaces, seeds)
        inbox = spaces.observation.spaces.get("inbox_mask")
        num_agents = 1 if inbox is None else (inbox.shape or (1,))[0]
        self._log_agents = 0.0 if self._radius == "own" else log(num_agents)
        self._divisor = float(num_agents) if self._radius == "printed" else 1.0
        if inbox is not None:
            self._heard = self._pool.counts(seeds.shape, spaces, ("delivered", "good"))
            self._heard_units, self._heard_good = self._heard.total, self._heard.good
        self._accepted = np.zeros((*seeds.shape, num_agents, self._heard_units.shape[-1]), np.bool_)

    def act(self, observation: Arrays) -> Array:
        """Takes in the inbox, then acts as SS-UCB; see :meth:`Policy.act`."""
        mask = observation.get("inbox_mask")
        if mask is not None and mask.any():
            own = observation["total_delivered"], observation["total_good"]
            _accept(
                mask, observation["inbox_delivered"], observation["inbox_good"], observation["round"], *own,
                self._heard_units, self._heard_good, self._check, self._guards, self._omega1, self._omega2,
                self._pool.additive, self._accepted,
            )  # fmt: skip
            self._heard.add(observation, own, self._accepted, self._omega2)
        return super().act(observation)
