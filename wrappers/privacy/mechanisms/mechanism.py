"""The interface of the mechanisms that a privatizer uses."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Sensitivity, with_variances
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
        correlated: Whether the noises of an agent's releases are correlated.
        takes_clip: Whether the mechanism can randomise clipped releases, in which single numbers may differ by twice
            their scale (:meth:`.Sensitivity.clipped`), and its events state what they guarantee then.
    """

    max_releases: int | None = None
    correlated: ClassVar[bool] = False
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

    def start_share(
        self, sensitivity: Sensitivity, horizon: int, generators: Generators, honest: int
    ) -> None:
        """Starts an episode in which agents add shares of one noise; by default, noise of ``1/honest`` the variance.

        Events stay those of the whole noise.

        Args:
            sensitivity: As for :meth:`start`, as are the horizon and the generators.
            horizon: Number of rounds of the episode.
            generators: The agents' random generators.
            honest: Number of shares that make up the whole noise.
        """
        share = {name: array / np.sqrt(honest) for name, array in sensitivity.scale.items()}
        self.start(sensitivity._replace(scale=share), horizon, generators)

    def observe(self, observation: Arrays) -> None:  # noqa: B027 - most mechanisms need no single rounds
        """Takes in what agents have observed after a round, for mechanisms that randomise single rounds' data.

        Args:
            observation: Arrays ``(replicas, agents, ...)`` by name; not to be changed or kept.
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
            (:mod:`fedbandit_envs.core.privacy`), float64. Variances must not depend on data, except on data that
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


class JointMechanism(Mechanism):
    """The base class of mechanisms whose releases of an agent are one joint mechanism, with noise of its own."""

    def events(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Returns how the counts of privacy events change when some agents release.

        All releases of an agent are one mechanism. So the count of the event of its first z - 1 releases falls by 1
        when that of the first z releases rises by 1; see :meth:`Mechanism.events`.
        """
        changed: dict[Event, Array] = {}
        for done in sorted(set(index[sends].tolist())):
            now = (sends & (index == done)).astype(np.int64)
            for z, times in ((done, -now), (done + 1, now)):
                if z > 0:
                    event = self._event(z)
                    changed[event] = changed.get(event, 0) + times
        return changed

    @abstractmethod
    def _event(self, z: int) -> Event:
        """Returns the event of an agent's first z releases."""
