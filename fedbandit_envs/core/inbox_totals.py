"""Sums of the messages that agents have received in an episode, for features."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.features import laplace
from fedbandit_envs.core.noise_variance import COVARIANCE, variance_of
from fedbandit_envs.core.policy_spec import PolicySpec


class InboxTotals:
    """Sums of some arrays over all messages that each agent has received so far; zero where there are no messages.

    Where a channel returns an agent's own messages to it (``echo``), these are left out. The downloads of a server with
    ``echo`` contain the agent's own data, which are then included.

    Attributes:
        exists: Whether agents receive messages in this environment.
        totals: The sums by name, float64 ``(replicas, agents, *shape)``; 0 for arrays that no message contains.
    """

    def __init__(self, spec: PolicySpec, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Chooses the arrays to sum.

        Args:
            spec: The environment's description for policies.
            shapes: Shape of each array by the name under which it is released; an array that is released in several
                slots is summed over these as well.
        """
        self._shapes = dict(shapes)
        self.exists = "inbox_mask" in spec.observation.spaces

    def reset(self, rows: tuple[int, int]) -> None:
        """Sets all sums to 0 for an episode of ``(replicas, agents)`` rows."""
        self.totals = {name: np.zeros((*rows, *shape)) for name, shape in self._shapes.items()}

    def add(self, observation: Arrays) -> None:
        """Adds the messages of one round's observation."""
        for name, total in self.totals.items():
            arrived = observation.get(f"inbox_{name}")
            if arrived is None:
                continue
            if "inbox_own" in observation:
                own = observation["inbox_own"]
                arrived = np.where(own.reshape(own.shape + (1,) * (arrived.ndim - 3)), 0.0, arrived)
            total += arrived.sum(axis=tuple(range(2, 2 + arrived.ndim - total.ndim)))


class InboxCounts:
    """Estimates of success probabilities from the counts that each agent has received so far.

    Attributes:
        exists: Whether agents receive messages in this environment.
    """

    def __init__(self, spec: PolicySpec, of: str, good: str) -> None:
        """Chooses the two released arrays to sum.

        Args:
            spec: The environment's description for policies.
            of: Name of the array that counts trials.
            good: Name of the array that counts successes.
        """
        self._names = (good, of, variance_of(good), variance_of(of), COVARIANCE)
        shape = spec.observation[f"total_{of}"].shape or ()
        self._inbox = InboxTotals(spec, dict.fromkeys(self._names, shape))
        self.exists = self._inbox.exists

    def reset(self, rows: tuple[int, int]) -> None:
        """Sets all counts to 0 for an episode of ``(replicas, agents)`` rows."""
        self._inbox.reset(rows)

    def estimate(self, observation: Arrays) -> tuple[Array, Array]:
        """Adds one round's messages and returns estimates of success probabilities, and how uncertain they are.

        Both are those of :func:`~.features.laplace`, from all counts received so far. Noisy counts are first replaced
        by a smaller number of exact outcomes whose mean is equally certain. For ``of`` noisy trials, with variance v_of
        of the noise in the trials, variance v_good of the noise in the successes and covariance v_both, that number is
        of (of / 4) / (v + of / 4), where v = v_good - 2 p v_both + p^2 v_of, p = good / of, and 1 / 4 is the largest
        variance of one outcome.
        """
        self._inbox.add(observation)
        good, of, of_good, of_all, of_both = (self._inbox.totals[name] for name in self._names)
        of = np.maximum(of, 0.0)
        share = np.clip(good / np.maximum(of, 1e-9), 0.0, 1.0)
        noise = np.maximum(of_good - 2.0 * share * of_both + share * share * of_all, 0.0)
        worth = of * (of / np.maximum(of + 4.0 * noise, 1e-9))
        return laplace(worth * share, worth)
