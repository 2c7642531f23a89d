"""Randomised response: every binary outcome is flipped, or not, before it is counted."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fedbandit_envs.federation import Array, Arrays, FederatedEnv
from fedbandit_envs.sensitivity import Change, Sensitivity
from fedbandit_envs.streams import Purpose, stream
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import Budget
from fedbandit_envs.wrappers.privacy.sharing import SharingPrivatizer


class RandomizedResponsePrivatizer(SharingPrivatizer):
    """Reports each unit as good or defective truly with probability e^eps/(1 + e^eps), else falsely.

    That is local differential privacy of every single outcome (Warner 1965): flips happen before units are
    counted. What is released as ``good`` is the unbiased estimate, which need not lie between 0 and
    ``delivered``.

    Quantities leave exactly as they are: ``one-outcome`` is all that is protected, and claims for any other
    adjacency are infinite.
    """

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        releases: int | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        on_exhausted: Literal["raise", "silence"] = "raise",
    ) -> None:
        """Wraps ``env``, which must release ``delivered`` and ``good``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Shared out over the releases, for one outcome; infinity flips none.
            releases: None for P-FCB's decreasing shares of ``epsilon``, which depend on the horizon; else the
                number of releases that get equal shares, after which the budget is exhausted.
            budget: How spending is measured and limited, a :class:`Budget` or its arguments.
                By default all releases are added up (``basic``) under ``one-outcome``, without a limit; since an
                outcome is released but once, ``parallel`` says less.
            on_exhausted: Whether a release that would exceed the budget is an error or does not happen
                silently (:meth:`permit` then says so in advance).

        Raises:
            TypeError: ``env`` or ``budget`` has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        if budget is None:
            budget = Budget(adjacency="one-outcome")
        super().__init__(env, epsilon, releases, Budget.of(budget), on_exhausted)

    def _describe(self, sensitivity: Sensitivity) -> list[Event]:
        if sensitivity.scale.keys() != {"delivered", "good"}:
            raise ValueError(
                f"the environment releases {sorted(sensitivity.scale)}; 'delivered' and 'good' are required"
            )
        return [
            Event("randomised_response", epsilon, epsilon, 0.0, (("one-outcome", Change(1, 1.0)),))
            for epsilon in self._shares.tolist()
        ]

    def _randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        share = self._share(index)
        delivered, good = statistic["delivered"], statistic["good"]
        # Both probabilities from the smaller one, which keeps its digits.
        flip = 1 / (1 + np.exp(np.minimum(self._shares, 700.0))) * np.isfinite(self._shares)
        reported = np.zeros(good.shape)
        for replica, agent in np.argwhere(sends):
            generator = self._generators[replica * sends.shape[1] + agent]
            probability = flip[share[replica, agent]]
            units, hits = delivered[replica, agent], good[replica, agent]
            reported[replica, agent] = (
                hits - generator.binomial(hits, probability) + generator.binomial(units - hits, probability)
            )
        bias = flip[share][..., np.newaxis]
        # 1 - 2 flip = tanh(epsilon/2); the mean of what is reported is flip * delivered + (1 - 2 flip) *
        # good.
        contrast = np.tanh(self._shares / 2)[share][..., np.newaxis]
        return {"delivered": delivered.astype(np.float64), "good": (reported - bias * delivered) / contrast}

    def _seed(self, seeds: Sequence[int]) -> list[np.random.Generator]:
        """Makes one generator an agent: how much is drawn depends on the units, and must not shift others."""
        return [stream(seed, Purpose.NOISE, agent) for seed in seeds for agent in range(self.max_num_agents)]
