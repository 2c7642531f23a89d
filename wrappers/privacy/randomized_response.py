"""Randomised response: every binary outcome is flipped, or not, before it is counted."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.sensitivity import Change, Pair, Sensitivity
from fedbandit_envs.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import Budget
from fedbandit_envs.wrappers.privacy.sharing import SharingPrivatizer


class RandomizedResponsePrivatizer(SharingPrivatizer):
    """Reports each outcome as good or defective truly with probability e^eps/(1 + e^eps), else falsely.

    That is local differential privacy of every single outcome (Warner 1965): flips happen before outcomes are
    counted. What is released as their number is the unbiased estimate, which need not lie between 0 and the total.

    Totals leave exactly as they are: ``one-outcome`` is all that is protected, and claims for any other
    adjacency are infinite. Each outcome adds as much noise to the estimate, whether it was good or not, so the variance
    announced tells no more than totals do.
    """

    examples = ({"epsilon": 1.0},)

    _names: Pair

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        releases: int | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        on_exhausted: Literal["raise", "silence"] = "raise",
        noise_seed: Entropy | None = None,
    ) -> None:
        """Wraps ``env``, whose statistic must count binary outcomes (:class:`~fedbandit_envs.sensitivity.Pair`).

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
            noise_seed: Entropy of its own for the noise, a non-negative integer of any size or several; None lets it
                follow from the episode's seed. See :class:`~fedbandit_envs.wrappers.privacy.privatizer.Privatizer`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        if budget is None:
            budget = Budget(adjacency="one-outcome")
        super().__init__(env, epsilon, releases, Budget.of(budget), on_exhausted, noise_seed)
        self._share_out()

    def _describe(self, sensitivity: Sensitivity) -> list[Event]:
        if sensitivity.pair is None or sensitivity.scale.keys() != {
            sensitivity.pair.total,
            sensitivity.pair.good,
        }:
            raise ValueError(
                f"what the environment releases, {sorted(sensitivity.scale)}, is not said to count binary outcomes and "
                "good ones among them; such a pair and nothing else is required"
            )
        self._names = sensitivity.pair
        return [
            Event("randomised_response", epsilon, epsilon, 0.0, (("one-outcome", Change(1, 1.0)),))
            for epsilon in self._shares.tolist()
        ]

    def _randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        # A liar may count fewer than none, or more good ones than there are: of those no outcome can be flipped.
        total = np.maximum(statistic[self._names.total], 0)
        good = np.clip(statistic[self._names.good], 0, total)
        share = self._share_by_row(index, good.ndim)
        flip = self._flip()
        reported = np.zeros(good.shape)
        for replica, agent in np.argwhere(sends):
            generator = self._generators[replica][agent]
            probability = flip[share[replica, agent]]
            units, hits = total[replica, agent], good[replica, agent]
            reported[replica, agent] = (
                hits - generator.binomial(hits, probability) + generator.binomial(units - hits, probability)
            )
        # 1 - 2 flip = tanh(epsilon/2); the mean of what is reported is flip total + (1 - 2 flip) good.
        contrast = np.tanh(self._shares / 2)[share]
        return {
            self._names.total: total.astype(np.float64),
            self._names.good: (reported - flip[share] * total) / contrast,
        }

    def _announce(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        total = np.maximum(statistic[self._names.total], 0)
        share = self._share_by_row(index, total.ndim)
        flip = self._flip()
        each = flip * (1 - flip) / np.tanh(self._shares / 2) ** 2
        return {
            variance_of(self._names.total): np.zeros(total.shape),
            variance_of(self._names.good): each[share] * total,
        }

    def _share_by_row(self, index: Array, axes: int) -> Array:
        """Returns the index of the share that a release gets, with as many axes as values have."""
        return self._share(index).reshape(index.shape + (1,) * (axes - 2))

    def _flip(self) -> Array:
        """Returns the probability that an outcome is flipped, for each of the shares."""
        # From the smaller one of both probabilities, which keeps its digits.
        flip: Array = 1 / (1 + np.exp(np.minimum(self._shares, 700.0))) * np.isfinite(self._shares)
        return flip
