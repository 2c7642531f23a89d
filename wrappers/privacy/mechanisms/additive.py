"""Mechanisms that add independent noise to every release, for a share of epsilon that the release spends."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.sensitivity import Changes, Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.flat import flatten, unflatten
from fedbandit_envs.wrappers.privacy.mechanisms.mechanism import Generators, Mechanism

# From here on the geometric part of the decreasing sequence is lost in rounding.
_DISTINCT = 64


def decreasing(epsilon: float, horizon: int) -> Array:
    """Returns epsilon/(2 log2 T) + epsilon/2^(z+1) for the releases z = 1, 2, ... (P-FCB, section 5.2).

    The paper prints "log"; only to base 2 do log2 T releases, as many as doubling gaps make, spend epsilon.

    Args:
        epsilon: To be spent on one value, > 0.
        horizon: T, at least 2.

    Returns:
        float64; all later releases get as much as the last.

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
    """The base of mechanisms whose releases are independent of each other, and each spend a share of epsilon.

    A subclass sets ``_events``, the event of a release that spends each of the shares, when an episode starts.
    """

    _events: Sequence[Event]

    def __init__(self, epsilon: float, releases: int | None = None) -> None:
        """Shares epsilon out over the releases.

        Args:
            epsilon: Of one value over all releases, > 0; infinity for no noise.
            releases: Number of releases with equal shares; None for :func:`decreasing` ones, without end.

        Raises:
            TypeError: ``releases`` is not an integer.
            ValueError: An argument is out of its range.
        """
        if not epsilon > 0:
            raise ValueError(f"epsilon is {epsilon!r}; a number > 0 (infinity for no noise) is required")
        if releases is not None:
            require_integer("releases", releases, 1)
        self._epsilon = epsilon
        self.max_releases = releases

    def prepare(self, env: FederatedEnv) -> None:
        """Shares epsilon out over the environment's horizon."""
        self._share_out(env.max_cycles)

    def _share_out(self, horizon: int) -> None:
        """Sets the share that the z-th release spends; all later releases get as much as the last.

        Raises:
            ValueError: Shares decrease, and the horizon is too short for them.
        """
        if self.max_releases is None:
            self._shares = decreasing(self._epsilon, horizon)
        else:
            self._shares = np.array([self._epsilon / self.max_releases])

    def _share(self, index: Array) -> Array:
        """Returns the index of the share that each agent's release spends."""
        return np.minimum(index, len(self._shares) - 1)

    def events(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Returns the events of the shares that are spent; see :meth:`Mechanism.events`."""
        share = self._share(index)
        by_event: dict[Event, Array] = {}
        for i in np.unique(share[sends]).tolist():
            # Shares that are equal up to rounding make the same event.
            event = self._events[i]
            by_event[event] = by_event.get(event, np.zeros_like(sends)) | (sends & (share == i))
        return by_event


class AdditiveMechanism(SharingMechanism):
    """Adds independent noise to every value of a release, for the share of epsilon that the release spends.

    The noise in a value of sensitivity s, of a release that spends the share e, is ``s * noise_multiplier(e)`` times
    a number that :meth:`draw` draws for that e. A subclass defines these two, the :meth:`unit_variance` of what is
    drawn, and the :meth:`event` that is booked.

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
        """Returns the variance of one number that :meth:`draw` draws for ``share``."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, share: float, out: Array) -> None:
        """Fills ``out`` with independent noise of size 1, for a release that spends ``share`` of epsilon.

        Args:
            generator: Random numbers of the agent that releases.
            share: Of epsilon, for one value: what is booked for this release.
            out: Receives the noise of all values of the release, float64 ``(values,)``.
        """

    @abstractmethod
    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns the event to book for a release that spends ``share``, whose noise has this multiplier.

        Args:
            share: Of epsilon, for one value.
            noise_multiplier: See :meth:`noise_multiplier`.
            changes: How neighbours differ in one release, by adjacency.
        """

    def _share_out(self, horizon: int) -> None:
        super()._share_out(horizon)
        self._calibrate()

    def _calibrate(self) -> None:
        """Sets the noise of each of the shares."""
        self._multipliers = np.array([self.noise_multiplier(share) for share in self._shares.tolist()])
        self._unit_variances = np.array([self.unit_variance(share) for share in self._shares.tolist()])

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode; see :meth:`Mechanism.start`."""
        self._share_out(horizon)
        steps = zip(self._shares.tolist(), self._multipliers.tolist(), strict=True)
        self._events = [self.event(*step, self._changes(sensitivity)) for step in steps]
        self._scale = flatten(sensitivity.scale)
        self._generators = generators
        self._noise = np.zeros_like(self._scale)

    def _changes(self, sensitivity: Sensitivity) -> Changes:
        return sensitivity.changes

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Adds noise to a release; see :meth:`Mechanism.randomise`."""
        share = self._share(index)
        noise = self._noise.reshape(len(self._generators), -1)
        spent = self._shares[share][sends].tolist()
        for row, each in zip(np.flatnonzero(sends).tolist(), spent, strict=True):
            self.draw(self._generators[row], each, noise[row])
        deviations = self._multipliers[share][..., np.newaxis] * self._scale
        variances = self._unit_variances[share][..., np.newaxis] * deviations**2
        return unflatten(flatten(statistic) + deviations * self._noise, variances, statistic)
