"""Privatizers that add independent noise in proportion to scale."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.sensitivity import Change, Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.flat import flatten, unflatten
from fedbandit_envs.wrappers.privacy.sharing import SharingPrivatizer


class AdditivePrivatizer(SharingPrivatizer):
    """Adds to every value its scale times the share's multiplier times standard noise."""

    # Of the standard noise, for each of the shares.
    _multipliers: Array
    # Of the standard noise.
    _unit_variance: ClassVar[float]

    def _describe(self, sensitivity: Sensitivity) -> list[Event]:
        self._scale = flatten(sensitivity.scale)
        self._noise = np.zeros_like(self._scale)
        changes = self._changes(sensitivity)
        return [self._event(share, changes) for share in range(len(self._shares))]

    def _randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        for replica, agent in np.argwhere(sends):
            self._draw(self._generators[replica][agent], self._noise[replica, agent])
        multipliers = self._multipliers[self._share(index)][..., np.newaxis]
        return unflatten(flatten(statistic) + multipliers * self._scale * self._noise, statistic)

    def _announce(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        deviations = self._multipliers[self._share(index)][..., np.newaxis] * self._scale
        variances = unflatten(self._unit_variance * deviations**2, statistic)
        return {variance_of(name): array for name, array in variances.items()}

    def _changes(self, sensitivity: Sensitivity) -> Mapping[Adjacency, Change]:
        """Says how neighbours show in what gets the noise."""
        return sensitivity.changes

    @abstractmethod
    def _event(self, share: int, changes: Mapping[Adjacency, Change]) -> Event:
        """Describes the release of one agent that gets the share of this index."""

    @abstractmethod
    def _draw(self, generator: np.random.Generator, out: Array) -> None:
        """Fills ``out`` with independent standard noise."""
