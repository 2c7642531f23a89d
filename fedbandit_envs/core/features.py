"""Features: bounded numbers that summarise an agent's history, as input of a neural network.

Raw counts are no such input: they grow without bound.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec


class Features(ABC):
    """Maps an agent's observations so far to a flat vector of numbers in [-1, 1].

    The vector consists of the features of each item (a producer or an arm), one item after another, and then of the
    features that exist only once. Where agents receive messages, items also have features computed from the sum of all
    messages received.

    The features of agent j in replica r depend on this agent's observations so far and on nothing else. Each problem
    has its own subclass, which is the problem's attribute ``features``.

    Attributes:
        each: Names of the features of one item, in order.
        shared: Names of the features that exist once, in order.
        items: Number of items.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedArms-v0", num_agents=2, num_arms=3)
        >>> features = env.features(env.policy_spec)
        >>> features.each, features.shared
        (('estimate', 'doubt'), ('time_left',))
        >>> features.reset((1, 2))
        >>> features.see(env.reset_batch([7]).observation).shape
        (1, 2, 7)
    """

    each: tuple[str, ...]
    shared: tuple[str, ...]
    items: int

    @abstractmethod
    def __init__(self, spec: PolicySpec) -> None:
        """Sets ``each``, ``shared`` and ``items``.

        Args:
            spec: The environment's description for policies.
        """

    @property
    def space(self) -> spaces.Box:
        """The space of one agent's features, float32 ``(items * len(each) + len(shared),)``."""
        return spaces.Box(-1.0, 1.0, (self.items * len(self.each) + len(self.shared),), np.float32)

    def reset(self, rows: tuple[int, int]) -> None:
        """Starts an episode with an empty history.

        Args:
            rows: ``(replicas, agents)`` of the episode.
        """
        self._features = np.zeros((*rows, *self.space.shape), np.float32)
        self._start(rows)

    def see(self, observation: Arrays) -> Array:
        """Adds one round's observations to the history; to be called once a round, the first observation included.

        Args:
            observation: Arrays by name, leading axes ``(replicas, agents)``.

        Returns:
            The features after this round, float32 ``(replicas, agents, size)``, a copy.
        """
        split = self.items * len(self.each)
        rows = self._features.shape[:2]
        self._write(
            observation,
            self._features[..., :split].reshape(*rows, self.items, len(self.each)),
            self._features[..., split:],
        )
        return self._features.copy()

    @abstractmethod
    def _start(self, rows: tuple[int, int]) -> None:
        """Starts an empty history for an episode with ``rows`` = ``(replicas, agents)``."""

    @abstractmethod
    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        """Adds one round's observations to the history and writes the features.

        Args:
            observation: Arrays by name, leading axes ``(replicas, agents)``.
            each: Output: the items' features, ``(replicas, agents, items, len(each))``.
            shared: Output: the features that exist once, ``(replicas, agents, len(shared))``.
        """


def highest(space: spaces.Space[Any]) -> float:
    """Returns the largest upper bound of any entry of a ``Box``.

    Raises:
        TypeError: The space is no ``Box``.
    """
    if not isinstance(space, spaces.Box):
        raise TypeError(f"space is {space}; a Box is required")
    return float(space.high.max())


def time_left(observation: Arrays, horizon: int) -> Array:
    """Returns the remaining time ``(replicas, agents)``, scaled: 1 before the first round, falling to -1 at the end."""
    left: Array = 1.0 - 2.0 * observation["round"][..., 0] / horizon
    return left


def laplace(good: Array, of: Array) -> tuple[Array, Array]:
    """Returns Laplace's estimate of a success probability, and how uncertain it is, both in [-1, 1].

    Args:
        good: Numbers of successes.
        of: Numbers of trials, same shape.

    Returns:
        The estimate 2 p - 1 with p = (good + 1) / (of + 2), and the uncertainty 1 / sqrt(of + 1).
    """
    return 2.0 * (good + 1.0) / (of + 2.0) - 1.0, 1.0 / np.sqrt(of + 1.0)
