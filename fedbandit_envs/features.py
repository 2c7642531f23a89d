"""What problems' features are made of: estimates and how sure they are, of what an agent has seen and heard.

Raw counts teach a network nothing: they grow without bound.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.announcement import COVARIANCE, variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.spaces import Spaces


class Heard:
    """What rows have heard so far of some arrays, added up; nothing where agents do not hear of each other.

    Where a channel has an echo, what they have sent themselves is left out; a server's downloads hold it.

    Attributes:
        some: Whether agents hear of each other.
        totals: By name, float64 ``(replicas, agents, *shape)``; 0 for what no message holds.
    """

    def __init__(self, spaces: Spaces, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Chooses arrays by the names under which they are released.

        Args:
            spaces: What policies are told of the environment.
            shapes: The arrays' own shapes by name; what is released in several slots is added up over them.
        """
        self._shapes = dict(shapes)
        self.some = "inbox_mask" in spaces.observation.spaces

    def reset(self, rows: tuple[int, int]) -> None:
        """Forgets an episode; see :meth:`Features.reset`."""
        self.totals = {name: np.zeros((*rows, *shape)) for name, shape in self._shapes.items()}

    def take_in(self, observation: Arrays) -> None:
        """Adds what has arrived."""
        for name, total in self.totals.items():
            arrived = observation.get(f"inbox_{name}")
            if arrived is None:
                continue
            if "inbox_own" in observation:
                own = observation["inbox_own"]
                arrived = np.where(own.reshape(own.shape + (1,) * (arrived.ndim - 3)), 0.0, arrived)
            total += arrived.sum(axis=tuple(range(2, 2 + arrived.ndim - total.ndim)))


class HeardCounts:
    """What rows have heard so far of counts of outcomes and of good ones among them.

    Attributes:
        some: Whether agents hear of each other.
    """

    def __init__(self, spaces: Spaces, of: str, good: str) -> None:
        """Chooses both counts by the names under which they are released."""
        self._names = (good, of, variance_of(good), variance_of(of), COVARIANCE)
        shape = spaces.observation[f"total_{of}"].shape or ()
        self._heard = Heard(spaces, dict.fromkeys(self._names, shape))
        self.some = self._heard.some

    def reset(self, rows: tuple[int, int]) -> None:
        """Forgets an episode; see :meth:`Features.reset`."""
        self._heard.reset(rows)

    def hear(self, observation: Arrays) -> tuple[Array, Array]:
        """Takes in what has arrived and returns :func:`laplace` of all that it is worth.

        Through noise of variance v_good, v_of and covariance v_both, ``of`` heard outcomes are worth so many exact ones
        that their mean is as sure: of (of / 4) / (v + of / 4), v = v_good - 2 p v_both + p^2 v_of, p = good / of, where
        an outcome has the variance 1 / 4.
        """
        self._heard.take_in(observation)
        good, of, of_good, of_all, of_both = (self._heard.totals[name] for name in self._names)
        of = np.maximum(of, 0.0)
        share = np.clip(good / np.maximum(of, 1e-9), 0.0, 1.0)
        noise = np.maximum(of_good - 2.0 * share * of_both + share * share * of_all, 0.0)
        worth = of * (of / np.maximum(of + 4.0 * noise, 1e-9))
        return laplace(worth * share, worth)


def highest(space: gym_spaces.Space[Any]) -> float:
    """Returns the largest entry that an element of a box can have.

    Raises:
        TypeError: The space is no box.
    """
    if not isinstance(space, gym_spaces.Box):
        raise TypeError(f"space is {space}; a Box is required")
    return float(space.high.max())


def time_left(observation: Arrays, horizon: int) -> Array:
    """Returns 1 before the first round, falling to -1 after the last, ``(replicas, agents)``."""
    left: Array = 1.0 - 2.0 * observation["round"][..., 0] / horizon
    return left


def laplace(good: Array, of: Array) -> tuple[Array, Array]:
    """Returns Laplace's estimate p = (good + 1) / (of + 2) as 2 p - 1, and doubt, 1 / sqrt(of + 1): both in [-1, 1]."""
    return 2.0 * (good + 1.0) / (of + 2.0) - 1.0, 1.0 / np.sqrt(of + 1.0)
