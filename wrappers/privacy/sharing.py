"""Privatizers that share epsilon out over the releases."""

from abc import abstractmethod
from typing import Literal

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.checks import require_integer
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.streams import Entropy
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
        noise_seed: Entropy | None,
    ) -> None:
        """Wraps ``env``; see :class:`Privatizer` for the arguments not named here.

        Args:
            env: The environment, not yet privatized.
            epsilon: Shared out over the releases, for one value; infinity adds no noise.
            releases: The number of releases that get equal shares, after which the budget is exhausted; None for
                P-FCB's decreasing shares, which depend on the horizon.
            budget: Likewise.
            on_exhausted: Likewise.
            noise_seed: Likewise.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, or ``env`` is already privatized.
        """
        super().__init__(env, epsilon, budget, on_exhausted, noise_seed)
        if releases is not None:
            require_integer("releases", releases, 1)
        self._releases = releases
        self._epsilon = epsilon

    def _share_out(self) -> None:
        """Shares epsilon out over the releases of the present horizon; mechanisms call it once they are made."""
        self._horizon = self.env.max_cycles
        # One value's epsilon by release; later releases get what the last entry says.
        self._shares: Array = (
            decreasing(self._epsilon, self._horizon)
            if self._releases is None
            else np.array([self._epsilon / self._releases])
        )

    def _prepare(self, sensitivity: Sensitivity) -> None:
        if self.env.max_cycles != self._horizon:
            self._share_out()
        self._events = self._describe(sensitivity)

    def _share(self, index: Array) -> Array:
        """Returns the index of the share that a release gets."""
        return np.minimum(index, len(self._shares) - 1)

    def _plan(self, sends: Array, index: Array) -> dict[Event, Array]:
        share = self._share(index)
        plan: dict[Event, Array] = {}
        for i in np.unique(share[sends]).tolist():
            # Shares that are alike make the same event.
            event = self._events[i]
            plan[event] = plan.get(event, np.zeros_like(sends)) | (sends & (share == i))
        return plan

    @abstractmethod
    def _describe(self, sensitivity: Sensitivity) -> list[Event]:
        """Prepares for data of this sensitivity, and says what event a release is, for each of the shares.

        Raises:
            ValueError: The mechanism cannot privatize a statistic of these names and sensitivities.
        """
