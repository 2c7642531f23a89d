"""Privatizers that add independent noise in proportion to sensitivity."""

from abc import abstractmethod
from math import prod

import numpy as np

from fedbandit_envs.federation import Array, Arrays
from fedbandit_envs.wrappers.event import Event
from fedbandit_envs.wrappers.privatizers.privatizer import Privatizer


class AdditivePrivatizer(Privatizer):
    """Adds to every value its sensitivity times the share's multiplier times standard noise.

    Noise is drawn for all agents of a replica in which somebody sends, so it does not depend on who does.
    """

    # Of the standard noise, for each of the shares.
    _multipliers: Array

    def _describe(self, sensitivity: Arrays) -> list[Event]:
        self._scale = _flatten(sensitivity)
        self._noise = np.zeros_like(self._scale)
        arrays, values = len(sensitivity), self._scale.shape[2]
        return [self._event(share, arrays, values) for share in range(len(self._shares))]

    def _randomise(self, statistic: Arrays, sends: Array, share: Array) -> Arrays:
        for replica in np.flatnonzero(sends.any(axis=1)):
            self._draw(self._generators[replica], self._noise[replica])
        noisy = _flatten(statistic) + self._multipliers[share][..., np.newaxis] * self._scale * self._noise
        randomised = {}
        start = 0
        for name, array in statistic.items():
            stop = start + prod(array.shape[2:])
            randomised[name] = noisy[..., start:stop].reshape(array.shape)
            start = stop
        return randomised

    @abstractmethod
    def _event(self, share: int, arrays: int, values: int) -> Event:
        """Describes the release of one agent that gets this share.

        Args:
            share: Index of the share.
            arrays: How many arrays a release has: one quantity shows in one entry of each.
            values: How many values they have together: one round shows in all of them.
        """

    @abstractmethod
    def _draw(self, generator: np.random.Generator, out: Array) -> None:
        """Fills ``out`` with independent standard noise."""


def _flatten(arrays: Arrays) -> Array:
    """Puts all values of an agent side by side: float64 ``(replicas, agents, values)``."""
    return np.concatenate(
        [array.reshape(*array.shape[:2], -1) for array in arrays.values()], axis=2, dtype=np.float64
    )
