"""The interface of the mechanisms that a privatizer uses."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.noise_variance import with_variances
from fedbandit_envs.core.sensitivity import Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.event import Event

Generators = Sequence[np.random.Generator]
"""Random numbers, one generator an agent and replica; agent j of replica r has number ``r * agents + j``."""


class Mechanism(ABC):
    """A mechanism: randomises the releases of agents and returns the privacy events to account for.

    A privatizer calls :meth:`prepare` once, :meth:`start` at each reset, and then for each release :meth:`randomise`
    and :meth:`events` with the same ``sends`` and ``index``. The number of an agent's release in its episode,
    and so its share of the budget, follows from ``index``; ``randomise`` must draw the noise that the events of
    ``events`` stand for. To add independent noise to every release, derive from :class:`.AdditiveMechanism`.

    Attributes:
        max_releases: The most releases of an agent in an episode; None for no limit. Known from :meth:`start` on.
    """

    max_releases: int | None = None

    @abstractmethod
    def prepare(self, env: FederatedEnv) -> None:
        """Gets ready for an environment before its first reset.

        Raises:
            ValueError: The mechanism does not fit the environment.
        """

    def release_space(self, released: spaces.Dict) -> spaces.Dict:
        """Returns the space of an agent's randomised releases, given that of releases without noise."""
        return with_variances(released)

    @abstractmethod
    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode in which nobody has released anything.

        Args:
            sensitivity: Of the environment's releases.
            horizon: Rounds of the episode.
            generators: See :data:`Generators`. Noise of an agent must come from its own generator.

        Raises:
            ValueError: The mechanism cannot randomise a statistic of these names and sensitivities.
        """

    @abstractmethod
    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns a randomised release, and the variance of its noise.

        Args:
            statistic: Released by the environment, arrays ``(replicas, agents, ...)`` by name.
            sends: Who releases, bool ``(replicas, agents)``; results of others are not used.
            index: How often each agent has released before, int ``(replicas, agents)``.

        Returns:
            Arrays of the same names and shapes, and for each of them its variance
            (:mod:`fedbandit_envs.core.noise_variance`), float64. Variances may depend on no data but what leaves
            without noise.
        """

    @abstractmethod
    def events(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Returns the privacy events of a release.

        Args:
            sends: Who releases, bool ``(replicas, agents)``.
            index: How often each agent has released before, int ``(replicas, agents)``.

        Returns:
            The change of each event's count, bool or integer ``(replicas, agents)``.
        """
