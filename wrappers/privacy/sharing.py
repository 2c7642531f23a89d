"""Privatizers that share epsilon out over the releases."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fedbandit_envs.federation import Array, FederatedEnv
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.streams import Purpose, stream
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import Budget, decreasing
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer


class SharingPrivatizer(Privatizer):
    """Makes every release private by itself, each agent's z-th one at its share of ``epsilon``."""

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        releases: int | None,
        budget: Budget,
        on_exhausted: Literal["raise", "silence"],
    ) -> None:
        """Wraps ``env``; see the mechanisms for the arguments."""
        super().__init__(env, epsilon, budget, on_exhausted)
        if releases is not None and (not isinstance(releases, int | np.integer) or releases < 1):
            raise ValueError(f"releases is {releases!r}; None or an integer >= 1 is required")
        self._releases = releases
        # One value's epsilon by release; later releases get what the last entry says.
        self._shares: Array = (
            decreasing(epsilon, env.max_cycles) if releases is None else np.array([epsilon / releases])
        )

    def _prepare(self, sensitivity: Sensitivity, seeds: Sequence[int]) -> None:
        self._events = self._describe(sensitivity)
        self._generators = self._seed(seeds)

    def _share(self, index: Array) -> Array:
        """Returns the index of the share that a release gets."""
        return np.minimum(index, len(self._shares) - 1)

    def _plan(self, sends: Array, index: Array) -> dict[Event, Array]:
        share = np.where(sends, self._share(index), -1)
        return {self._events[i]: share == i for i in np.unique(share) if i >= 0}

    @abstractmethod
    def _describe(self, sensitivity: Sensitivity) -> list[Event]:
        """Prepares for data of this sensitivity, and says what event a release is, for each of the shares.

        Raises:
            ValueError: The mechanism cannot privatize a statistic of these names and sensitivities.
        """

    def _seed(self, seeds: Sequence[int]) -> list[np.random.Generator]:
        """Makes the generators of an episode's noise, one a replica."""
        return [stream(seed, Purpose.NOISE) for seed in seeds]
