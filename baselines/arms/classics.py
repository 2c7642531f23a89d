"""The classic bandit algorithms as policies: each scores arms by the agent's own and received counts.

Unless its constructor differs, a policy takes the constants of its rule, which are defined in
:mod:`fedbandit_envs.baselines.arms.rules`, and ``pool``, the aggregator of received counts.
"""

from fedbandit_envs.arms.actions import make_oracle
from fedbandit_envs.baselines.aggregators import AggregatorSpec
from fedbandit_envs.baselines.arms.policy import ArmPolicy
from fedbandit_envs.baselines.arms.rules import (
    UCB,
    EpsilonDecreasing,
    EpsilonGreedy,
    Pursuit,
    Softmax,
    Thompson,
)
from fedbandit_envs.basics.arrays import Arrays


class EpsilonGreedyPolicy(ArmPolicy, EpsilonGreedy):
    """Epsilon-greedy: with a fixed probability ``epsilon`` a random arm, else the arm with the largest mean.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import EpsilonGreedyPolicy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = EpsilonGreedyPolicy(epsilon=0.2)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class EpsilonDecreasingPolicy(ArmPolicy, EpsilonDecreasing):
    """Epsilon-decreasing: in round t a random arm with probability 1 / log2(t), else the arm with the largest mean.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import EpsilonDecreasingPolicy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = EpsilonDecreasingPolicy()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class UCB1(ArmPolicy, UCB):
    """UCB1: the arm with the largest ``mean + sqrt(scale ln t / n)`` after n pulls, in round t.

    With ``logarithm="horizon"`` the horizon T replaces the round t.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import UCB1
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = UCB1(scale=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class ThompsonSampling(ArmPolicy, Thompson):
    """Thompson sampling: pulls the arm with the largest draw from its posterior, Beta(1 + successes, 1 + failures).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import ThompsonSampling
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = ThompsonSampling()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class SoftmaxPolicy(ArmPolicy, Softmax):
    """Boltzmann exploration: an arm is pulled with probability proportional to exp(mean / ``temperature``).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import SoftmaxPolicy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = SoftmaxPolicy(temperature=0.2)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class PursuitPolicy(ArmPolicy, Pursuit):
    """Pursuit: draws arms from probabilities that move, in each round, towards 1 for the arm with the largest mean.

    A probability moves by the share ``rate`` of its distance from 1 or, for the other arms, from 0.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import PursuitPolicy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = PursuitPolicy(rate=0.05)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class CUCB(ArmPolicy, UCB):
    """CUCB: an oracle picks arms by ``mean + sqrt(3 ln T / (2 n))`` (Chen et al. 2013; thesis, Algorithm 2.3).

    T is the horizon, and n the number of pulls of the arm.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import CUCB
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = CUCB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, oracle: str = "largest", pool: AggregatorSpec = "sum") -> None:
        """Sets the oracle, and the aggregator of received counts.

        Args:
            oracle: ``"largest"``, which picks the arms with the largest bounds, or the entry point
                ``"module:attribute"`` of an :data:`~fedbandit_envs.arms.actions.Oracle`.
            pool: The aggregator of received counts, or its specification; see
                :mod:`fedbandit_envs.baselines.aggregators`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A name is unknown.
        """
        super().__init__(1.5, "horizon", pool=pool)
        self._oracle = make_oracle(oracle)


class UniformArms(ArmPolicy, EpsilonGreedy):
    """Pulls arms uniformly at random.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import UniformArms
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = UniformArms()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self) -> None:
        """Makes the policy, which has no parameters."""
        super().__init__(epsilon=1.0)

    def _learn(self, observation: Arrays) -> None:
        # Arms that were never pulled would be pulled first, in order. Every arm is given one pull, so that the first
        # arms are random, too.
        self._pulls.fill(1.0)


LEARNERS = {policy.__name__: policy for policy in ArmPolicy.__subclasses__()}
"""The classes of all policies in this file, by name."""
