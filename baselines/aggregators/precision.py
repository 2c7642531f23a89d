"""The aggregator ``precision``, which weighs received messages by the noise that they announce.

Messages announce the variance of their noise (:mod:`fedbandit_envs.core.privacy`). The received statistics
are replaced by those of as many exact observations as are equally informative, and added to the agent's own data, which
stay exact. So pure noise counts for next to nothing, messages without data do not harm, and no message need be checked
and no estimate regularised because of noise. The numbers of exact observations are plug-in estimates, not bounds;
:mod:`~fedbandit_envs.baselines.aggregators.counts` and :mod:`~fedbandit_envs.baselines.aggregators.grams` define them.

The aggregator is not robust: a sender that announces less noise than it has added counts for more than it should, as
does a sender that multiplies its statistics by a factor.
"""

from dataclasses import dataclass

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number


@dataclass
class Precision(Aggregator):
    """An aggregator that replaces noisy sums by statistics of as many exact observations as are equally informative.

    Attributes:
        reward_variance: R^2 > 0, the variance of one reward, used for Gram matrices; for counts of binary outcomes the
            variance follows from the counts. 1/4 is the largest possible variance of a reward in [0, 1].

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
        """Checks that ``reward_variance`` is a finite number > 0.

        Raises:
            TypeError: The variance is no number.
            ValueError: The variance is not > 0, or infinite.
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
