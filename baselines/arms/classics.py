"""The classic bandit algorithms as policies: each scores arms by what the agent knows itself and has received."""

from fedbandit_envs.arms.oracle import make_oracle
from fedbandit_envs.baselines.aggregators import AggregatorSpec
from fedbandit_envs.baselines.arms.policy import ArmPolicy
from fedbandit_envs.baselines.arms.rules import (
    UCB,
    EpsilonDecreasing,
    EpsilonGreedy,
    LogName,
    Pursuit,
    Softmax,
    Thompson,
)
from fedbandit_envs.basics.arrays import Arrays


class EpsilonGreedyPolicy(ArmPolicy):
    """Epsilon-greedy with a fixed epsilon; see :class:`~fedbandit_envs.baselines.arms.rules.EpsilonGreedy`.

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

    def __init__(self, epsilon: float = 0.1, pool: AggregatorSpec = "sum") -> None:
        """Sets epsilon, in [0, 1], and the aggregator of what is received; see :class:`ArmPolicy` for errors."""
        super().__init__(EpsilonGreedy(epsilon), pool)


class EpsilonDecreasingPolicy(ArmPolicy):
    """Epsilon-greedy, epsilon = 1 / log2(t); see :class:`~fedbandit_envs.baselines.arms.rules.EpsilonDecreasing`.

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

    def __init__(self, pool: AggregatorSpec = "sum") -> None:
        """Sets the aggregator of what is received; see :class:`ArmPolicy` for errors."""
        super().__init__(EpsilonDecreasing(), pool)


class UCB1(ArmPolicy):
    """UCB1, with the logarithm of the round or of the horizon; see :class:`~fedbandit_envs.baselines.arms.rules.UCB`.

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

    def __init__(
        self, scale: float = 2.0, logarithm: LogName = "round", pool: AggregatorSpec = "sum"
    ) -> None:
        """Sets the radius, and the aggregator of what is received; see :class:`ArmPolicy` for errors."""
        super().__init__(UCB(scale, logarithm), pool)


class ThompsonSampling(ArmPolicy):
    """Thompson sampling; see :class:`~fedbandit_envs.baselines.arms.rules.Thompson`.

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

    def __init__(self, pool: AggregatorSpec = "sum") -> None:
        """Sets the aggregator of what is received; see :class:`ArmPolicy` for errors."""
        super().__init__(Thompson(), pool)


class SoftmaxPolicy(ArmPolicy):
    """Boltzmann exploration; see :class:`~fedbandit_envs.baselines.arms.rules.Softmax`.

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

    def __init__(self, temperature: float = 0.1, pool: AggregatorSpec = "sum") -> None:
        """Sets the temperature, and the aggregator of what is received; see :class:`ArmPolicy` for errors."""
        super().__init__(Softmax(temperature), pool)


class PursuitPolicy(ArmPolicy):
    """Pursuit; see :class:`~fedbandit_envs.baselines.arms.rules.Pursuit`.

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

    def __init__(self, rate: float = 0.1, pool: AggregatorSpec = "sum") -> None:
        """Sets the learning rate, and the aggregator of what is received; see :class:`ArmPolicy` for errors."""
        super().__init__(Pursuit(rate), pool)


class CUCB(ArmPolicy):
    """CUCB: bounds ``mean + sqrt(3 ln T / (2 n))``, then an oracle (Chen et al. 2013; thesis, Algorithm 2.3).

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
        """Sets the oracle, and the aggregator of what is received.

        Args:
            oracle: ``"largest"``, or the entry point of an :class:`~fedbandit_envs.arms.oracle.Oracle`.
            pool: The aggregator, or its specification; see :mod:`fedbandit_envs.baselines.aggregators`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A name is unknown.
        """
        super().__init__(UCB(1.5, "horizon"), pool, make_oracle(oracle))


class UniformArms(ArmPolicy):
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
        """Takes no settings."""
        super().__init__(EpsilonGreedy(1.0))

    def _learn(self, observation: Arrays) -> None:
        # One pull of each, so that no arm is pulled first because it is new.
        self._pulls.fill(1.0)


LEARNERS = {policy.__name__: policy for policy in ArmPolicy.__subclasses__()}
"""All policies of this file by name."""
