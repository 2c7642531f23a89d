"""Weighing what is received by the noise it announces: each message counts for what it is worth.

Messages announce the variance of their noise (:mod:`fedbandit_envs.core.noise_variance`). What was received
is replaced by the number of exact observations that are as informative, and added to the agent's own data, which stay
exact. So pure noise counts for next to nothing, a placebo is as good as no communication, and nothing need be checked
or regularised because of noise. The estimates of worth are plug-in estimates, no bounds; they are defined in
:mod:`~fedbandit_envs.baselines.aggregators.counts` and :mod:`~fedbandit_envs.baselines.aggregators.grams`.

This is not robust: a sender that announces less noise than it has added counts for more than it should, as does one
that multiplies what it sends.
"""

from dataclasses import dataclass

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number


@dataclass
class Precision(Aggregator):
    """Replaces noisy sums by as many exact observations as they are worth.

    Attributes:
        reward_variance: R^2 > 0, the variance of one reward, used for Gram matrices; for counts it follows from the
            counts. 1/4 is the largest possible for a reward in [0, 1].

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import Precision
        >>> from fedbandit_envs.baselines.aggregators.counts import count_inbox
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Channel
        >>> spec = Channel(parallel_env(num_agents=3, num_arms=2)).policy_spec
        >>> aggregate = Precision().start(count_inbox(spec, (1, 1), "pulls", "successes"))
        >>> aggregate.totals["pulls"]
        array([[[0., 0.]]])
    """

    reward_variance: float = 0.25

    def __post_init__(self) -> None:
        """Checks the variance.

        Raises:
            TypeError: It is no number.
            ValueError: It is not > 0, or infinite.
        """
        require_number("reward_variance", self.reward_variance, 0, np.inf, open_below=True)

    def _begin(self, inbox: InboxSpec) -> None:
        if inbox.echoed:
            raise UnfitError(
                "agents receive what they have sent themselves, through noise, which the aggregator 'precision' would "
                "count beside the exact data; a transport with echo=False is required"
            )
        if inbox.weigh is None:
            raise UnfitError(
                f"nobody has said what noisy arrays {list(inbox.shapes)} are worth; an InboxSpec with 'weigh', as "
                "counts and Gram matrices have, is required for the aggregator 'precision'"
            )
        self._worth = inbox.weigh(float(self.reward_variance)).start(inbox)
        self._totals = self._worth.totals

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        self._worth.add(observation, arrived, exact, weight)
