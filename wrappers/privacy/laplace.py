"""Laplace noise: pure differential privacy, delta 0."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.sensitivity import Change
from fedbandit_envs.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.additive import AdditivePrivatizer
from fedbandit_envs.wrappers.privacy.budget import Budget


class LaplacePrivatizer(AdditivePrivatizer):
    """Adds Laplace noise of scale/epsilon^z to every value of the z-th release.

    One value alone is then (epsilon^z, 0) private (Dwork et al. 2006, Proposition 1); values that change
    together add up.
    """

    examples = ({"epsilon": 1.0},)
    _unit_variance = 2.0

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        releases: int | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        on_exhausted: Literal["raise", "silence"] = "raise",
        noise_seed: Entropy | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Shared out over the releases, for one value; infinity adds no noise.
            releases: None for P-FCB's decreasing shares of ``epsilon``, which depend on the horizon; else the
                number of releases that get equal shares, after which the budget is exhausted.
            budget: How spending is measured and limited, a :class:`Budget` or its arguments.
                By default the promises for single values are added up (``basic``) under the first adjacency
                that the environment names, without a limit.
            on_exhausted: Whether a release that would exceed the budget is an error or does not happen
                silently (:meth:`permit` then says so in advance).
            noise_seed: Entropy of its own for the noise, a non-negative integer of any size or several; None lets it
                follow from the episode's seed. See :class:`~fedbandit_envs.wrappers.privacy.privatizer.Privatizer`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        super().__init__(env, epsilon, releases, Budget.of(budget), on_exhausted, noise_seed)
        self._share_out()

    def _share_out(self) -> None:
        super()._share_out()
        self._multipliers = 1 / self._shares

    def _event(self, share: int, changes: Mapping[Adjacency, Change]) -> Event:
        epsilon = float(self._shares[share])
        return Event("laplace", epsilon, epsilon, 0.0, tuple(changes.items()))

    def _draw(self, generator: np.random.Generator, out: Array) -> None:
        # The difference of two standard exponentials is standard Laplace.
        generator.standard_exponential(out=out)
        out -= generator.standard_exponential(out.shape)
