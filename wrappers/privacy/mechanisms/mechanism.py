"""The interface of the mechanisms that a privatizer uses."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.noise_variance import with_variances
from fedbandit_envs.core.sensitivity import Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.event import Event

Generators = Sequence[np.random.Generator]
"""Random generators, one for each agent of each replica; that of agent j in replica r has index ``r * agents + j``."""


class Mechanism(ABC):
    """A mechanism: randomises the releases of agents and returns the privacy events that the accountant records.

    A privatizer calls :meth:`prepare` once, :meth:`start` at each reset, and then for each release :meth:`randomise`
    and :meth:`events` with the same ``sends`` and ``index``. ``index`` says how often each agent has released before in
    the episode, and so which share of the budget this release spends. The noise that ``randomise`` adds must be at
    least as large as the events of ``events`` claim. To add independent noise to every release, derive from
    :class:`.AdditiveMechanism`.

    Attributes:
        max_releases: The most releases of an agent in an episode; None for no limit. Known from :meth:`start` on.
        takes_clip: Whether the mechanism can randomise clipped releases, in which single numbers may differ by twice
            their scale (:meth:`.Sensitivity.clipped`), and its events state what they guarantee then.
    """

    max_releases: int | None = None
    takes_clip: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, env: FederatedEnv) -> None:
        """Prepares the mechanism for an environment, before the environment's first reset.

        Args:
            env: The environment whose releases get the noise.

        Raises:
            ValueError: The mechanism does not fit the environment.
        """

    def release_space(self, released: spaces.Dict) -> spaces.Dict:
        """Returns the space of an agent's releases with noise, given the space of its releases without noise."""
        return with_variances(released)

    @abstractmethod
    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode in which no agent has released anything yet.

        Args:
            sensitivity: The sensitivity of the environment's releases.
            horizon: Number of rounds of the episode.
            generators: The agents' random generators, see :data:`Generators`. Noise of an agent must come from its own
                generator.

        Raises:
            ValueError: The mechanism cannot randomise a statistic of these names and sensitivities.
        """

    @abstractmethod
    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns a release with noise, and the variance of the noise.

        Args:
            statistic: The environment's release, arrays ``(replicas, agents, ...)`` by name.
            sends: Which agents release, bool ``(replicas, agents)``; results of others are not used.
            index: How often each agent has released before, int ``(replicas, agents)``.

        Returns:
            Arrays of the same names and shapes, and for each of them its variance
            (:mod:`fedbandit_envs.core.noise_variance`), float64. Variances must not depend on data, except on data that
            are released without noise.
        """

    @abstractmethod
    def events(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Returns the privacy events of a release, for the accountant to count.

        Args:
            sends: Which agents release, bool ``(replicas, agents)``.
            index: How often each agent has released before, int ``(replicas, agents)``.

        Returns:
            For each event, by how much its count changes for each agent, bool or integer ``(replicas, agents)``.
        """
