"""The classic policies by name: an agent for each rule, on what it knows itself and what it hears."""

from fedbandit_envs.arms.oracle import make_oracle
from fedbandit_envs.arrays import Arrays
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
from fedbandit_envs.baselines.pool import PoolSpec


class EpsilonGreedyPolicy(ArmPolicy):
    """Epsilon-greedy with a fixed epsilon; see :class:`~fedbandit_envs.baselines.arms.rules.EpsilonGreedy`."""

    def __init__(self, epsilon: float = 0.1, pool: PoolSpec = "sum") -> None:
        """Sets epsilon, in [0, 1], and how what is heard is put together; see :class:`ArmPolicy` for errors."""
        super().__init__(EpsilonGreedy(epsilon), pool)


class EpsilonDecreasingPolicy(ArmPolicy):
    """Epsilon-greedy, epsilon = 1 / log2(t); see :class:`~fedbandit_envs.baselines.arms.rules.EpsilonDecreasing`."""

    def __init__(self, pool: PoolSpec = "sum") -> None:
        """Sets how what is heard is put together; see :class:`ArmPolicy` for errors."""
        super().__init__(EpsilonDecreasing(), pool)


class UCB1(ArmPolicy):
    """UCB1, with either radius; see :class:`~fedbandit_envs.baselines.arms.rules.UCB`."""

    def __init__(self, scale: float = 2.0, logarithm: LogName = "round", pool: PoolSpec = "sum") -> None:
        """Sets the radius, and how what is heard is put together; see :class:`ArmPolicy` for errors."""
        super().__init__(UCB(scale, logarithm), pool)


class ThompsonSampling(ArmPolicy):
    """Thompson sampling; see :class:`~fedbandit_envs.baselines.arms.rules.Thompson`."""

    def __init__(self, pool: PoolSpec = "sum") -> None:
        """Sets how what is heard is put together; see :class:`ArmPolicy` for errors."""
        super().__init__(Thompson(), pool)


class SoftmaxPolicy(ArmPolicy):
    """Boltzmann exploration; see :class:`~fedbandit_envs.baselines.arms.rules.Softmax`."""

    def __init__(self, temperature: float = 0.1, pool: PoolSpec = "sum") -> None:
        """Sets the temperature, and how what is heard is put together; see :class:`ArmPolicy` for errors."""
        super().__init__(Softmax(temperature), pool)


class PursuitPolicy(ArmPolicy):
    """Pursuit; see :class:`~fedbandit_envs.baselines.arms.rules.Pursuit`."""

    def __init__(self, rate: float = 0.1, pool: PoolSpec = "sum") -> None:
        """Sets the learning rate, and how what is heard is put together; see :class:`ArmPolicy` for errors."""
        super().__init__(Pursuit(rate), pool)


class CUCB(ArmPolicy):
    """CUCB: bounds ``mean + sqrt(3 ln T / (2 n))``, then an oracle (Chen et al. 2013; thesis, Algorithm 2.3)."""

    def __init__(self, oracle: str = "largest", pool: PoolSpec = "sum") -> None:
        """Sets the oracle, and how what is heard is put together.

        Args:
            oracle: ``"largest"``, or the entry point of an :class:`~fedbandit_envs.arms.oracle.Oracle`.
            pool: See :mod:`fedbandit_envs.baselines.pool`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A name is unknown.
        """
        super().__init__(UCB(1.5, "horizon"), pool, make_oracle(oracle))


class UniformArms(ArmPolicy):
    """Pulls arms at random, whatever it has seen."""

    def __init__(self) -> None:
        """Has nothing to set."""
        super().__init__(EpsilonGreedy(1.0))

    def _learn(self, observation: Arrays) -> None:
        # No arm has to come first.
        self._pulls.fill(1.0)
