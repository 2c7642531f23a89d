"""Mechanisms that divide a given epsilon among an agent's releases, whose noise is independent."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_epsilon, require_integer, require_number
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Changes, Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.flat import flatten, unflatten
from fedbandit_envs.wrappers.privacy.mechanisms.mechanism import Generators, Mechanism

# Number of different shares of epsilon that `decreasing` computes. For later releases z, the term epsilon/2^(z+1) is
# lost in rounding, so their shares are equal.
_DISTINCT = 64


Releases = int | Sequence[float] | None
"""Planned releases of an agent: their number, for equal shares of epsilon; or the proportions of their shares, each
above 0; or None for any number with :func:`decreasing` shares."""


def decreasing(epsilon: float, horizon: int) -> Array:
    """Returns the epsilon that release z = 1, 2, ... may spend: epsilon/(2 log2 T) + epsilon/2^(z+1).

    This is P-FCB, section 5.2. The paper prints "log"; only with base 2 do log2 T releases, as many as a schedule with
    doubling gaps makes, spend epsilon together.

    Args:
        epsilon: Epsilon of all releases together, > 0.
        horizon: The number of rounds T, at least 2.

    Returns:
        The shares of epsilon, float64; all later releases get as much as the last entry.

    Raises:
        ValueError: The horizon is too short.
    """
    if horizon < 2:
        raise ValueError(
            f"max_cycles is {horizon}; at least 2 is required to share epsilon out, or state releases"
        )
    z = np.arange(1, _DISTINCT + 1)
    return epsilon / (2 * np.log2(horizon)) + epsilon / 2.0 ** (z + 1)


class SharingMechanism(Mechanism):
    """The base class of mechanisms that divide epsilon among releases with independent noise.

    When an episode starts, a subclass sets ``_events``: the privacy event of a release for each of the shares.
    """

    _events: Sequence[Event]

    def __init__(self, epsilon: float, releases: Releases = None) -> None:
        """Takes the epsilon that is divided among an agent's releases.

        Args:
            epsilon: Epsilon of all releases together, if neighbours differ in one number of each release, > 0;
                infinity for no noise.
            releases: See :data:`Releases`.

        Raises:
            TypeError: ``releases`` is neither an integer nor a sequence of numbers.
            ValueError: An argument is out of its range.
        """
        require_epsilon(epsilon)
        self._epsilon = epsilon
        self._proportions: Array | None = None
        if isinstance(releases, Sequence):
            require_integer("len(releases)", len(releases), 1)
            for place, one in enumerate(releases):
                require_number(f"releases[{place}]", one, 0, np.inf, open_below=True, open_above=True)
            self._proportions = np.divide(releases, sum(releases))
            releases = len(releases)
        elif releases is not None:
            require_integer("releases", releases, 1)
        self.max_releases = releases

    def prepare(self, env: FederatedEnv) -> None:
        """Computes each release's share of epsilon, which may depend on the environment's horizon."""
        self._share_out(env.max_cycles)

    def _share_out(self, horizon: int) -> None:
        """Sets ``_shares``, the epsilon that each release spends; releases beyond its end spend the last entry.

        Raises:
            ValueError: Shares decrease, and the horizon is below 2.
        """
        if self._proportions is not None:
            self._shares = self._epsilon * self._proportions
        elif self.max_releases is None:
            self._shares = decreasing(self._epsilon, horizon)
        else:
            self._shares = np.array([self._epsilon / self.max_releases])

    def _share(self, index: Array) -> Array:
        """Returns the position in ``_shares`` of the share of epsilon that each agent's next release spends.

        Args:
            index: How often each agent has released before, int ``(replicas, agents)``.
        """
        return np.minimum(index, len(self._shares) - 1)

    def events(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Returns the privacy events of a release, and which agents each applies to; see :meth:`Mechanism.events`."""
        share = self._share(index)
        by_event: dict[Event, Array] = {}
        for i in np.unique(share[sends]).tolist():
            # Different shares may have equal events. The agents of equal events are collected under one event.
            event = self._events[i]
            by_event[event] = by_event.get(event, np.zeros_like(sends)) | (sends & (share == i))
        return by_event


class AdditiveMechanism(SharingMechanism):
    """Adds independent noise to every number in a release; its size follows from the release's share of epsilon.

    If a release spends the share e, the noise in a number of sensitivity s is ``s * noise_multiplier(e)`` times
    a random number from :meth:`draw`. A subclass defines these two methods, the variance of the random number
    (:meth:`unit_variance`), and the privacy :meth:`event` to account for.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers.privacy.accounting.event import Event
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.additive import AdditiveMechanism
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
        >>> class TwoSidedExponential(AdditiveMechanism):
        ...     def noise_multiplier(self, share):
        ...         return 1 / share
        ...     def unit_variance(self, share):
        ...         return 2.0
        ...     def draw(self, generator, share, out):
        ...         out[...] = generator.laplace(size=out.shape)
        ...     def event(self, share, noise_multiplier, changes):
        ...         return Event("laplace", share, share, 0.0, tuple(changes.items()))
        >>> env = Privatizer(parallel_env(num_agents=2), TwoSidedExponential(epsilon=1.0, releases=4))
    """

    @abstractmethod
    def noise_multiplier(self, share: float) -> float:
        """Returns the size of the noise in units of sensitivity, for a release that spends ``share`` of epsilon."""

    @abstractmethod
    def unit_variance(self, share: float) -> float:
        """Returns the variance of one number that :meth:`draw` draws, for a release that spends ``share``."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, share: float, out: Array) -> None:
        """Fills ``out`` with independent noise of size 1, for a release that spends ``share`` of epsilon.

        Args:
            generator: Random generator of the agent that releases.
            share: The share of epsilon that the release spends.
            out: Output: the noise of all numbers in the release, float64 ``(values,)``.
        """

    @abstractmethod
    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns the privacy event that the accountant records for one release.

        Args:
            share: The share of epsilon that the release spends, if neighbours differ in one of its numbers.
            noise_multiplier: Size of the release's noise in units of sensitivity, see :meth:`noise_multiplier`.
            changes: How much neighbours can differ in one release, by adjacency.
        """

    def _share_out(self, horizon: int) -> None:
        super()._share_out(horizon)
        self._calibrate()

    def _calibrate(self) -> None:
        """Computes the multiplier and the variance of the noise for each of the shares."""
        self._multipliers = np.array([self.noise_multiplier(share) for share in self._shares.tolist()])
        self._unit_variances = np.array([self.unit_variance(share) for share in self._shares.tolist()])

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode: divides epsilon into a share for each release; see :meth:`Mechanism.start`."""
        self._share_out(horizon)
        steps = zip(self._shares.tolist(), self._multipliers.tolist(), strict=True)
        self._events = [self.event(*step, self._changes(sensitivity)) for step in steps]
        self._scale = flatten(sensitivity.scale)
        self._generators = generators
        self._noise = np.zeros_like(self._scale)

    def _changes(self, sensitivity: Sensitivity) -> Changes:
        return sensitivity.changes

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns a release with noise, and the variances of the noise; see :meth:`Mechanism.randomise`."""
        share = self._share(index)
        noise = self._noise.reshape(len(self._generators), -1)
        spent = self._shares[share][sends].tolist()
        for row, each in zip(np.flatnonzero(sends).tolist(), spent, strict=True):
            self.draw(self._generators[row], each, noise[row])
        deviations = self._multipliers[share][..., np.newaxis] * self._scale
        variances = self._unit_variances[share][..., np.newaxis] * deviations**2
        return unflatten(flatten(statistic) + deviations * self._noise, variances, statistic)
