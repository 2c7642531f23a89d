"""Gaussian noise, as in P-FCB, with its textbook and its exact calibration."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from fedbandit_envs.announcement import COVARIANCE, variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_choice, require_number
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.sensitivity import Change, Pair, Sensitivity
from fedbandit_envs.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
    gaussian_delta,
)
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.additive import AdditivePrivatizer
from fedbandit_envs.wrappers.privacy.budget import Budget


class GaussianPrivatizer(AdditivePrivatizer):
    """Adds N(0, (scale * multiplier)^2) to every value of the z-th release, at its share epsilon^z.

    With the defaults this is P-FCB's privatizer, on delivered and on good units alike:
    sd = k sqrt(2 ln(1.25/delta))/epsilon^z (Solanki et al. 2022, equations 10 and 11). Quantity and outcome
    change together, so such a message has the joint sensitivity sqrt(2) k and costs the promise twice.

    With ``pair="good_and_defective"``, for statistics that count binary outcomes, good and defective ones get the noise
    instead, each as much, and their sum is the total. Where a larger quantity has the same outcomes and more, as in
    procurement, both can only grow, by k together: so the joint sensitivity is k and a message costs the promise once.
    The sum has twice the variance; at sqrt(2) times the epsilon it has the same variance and privacy as by default, and
    good outcomes have half the variance. How neighbours show is said by the environment
    (:class:`~fedbandit_envs.sensitivity.Pair`). Releases then also carry ``noise_covariance``, of the noise in totals
    and in good outcomes, value by value.
    """

    examples = ({"epsilon": 0.9}, {"epsilon": 0.9, "calibration": "analytic", "noise_seed": 2**64})

    _unit_variance = 1.0
    # The arrays of the pair, where that is what gets the noise.
    _names: Pair

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        delta: float = 0.01,
        calibration: Literal["classic", "analytic"] = "classic",
        releases: int | None = None,
        pair: Literal["as_given", "good_and_defective"] = "as_given",
        budget: Budget | Mapping[str, Any] | None = None,
        on_exhausted: Literal["raise", "silence"] = "raise",
        noise_seed: Entropy | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Shared out over the releases, for one value; infinity adds no noise.
            delta: Of each release, for one value.
            calibration: ``"classic"``, the paper's formula, or ``"analytic"``, the least noise that will do.
            releases: None for the paper's decreasing shares of ``epsilon``, which depend on the horizon; else
                the number of releases that get equal shares, after which the budget is exhausted.
            pair: What gets the noise: the arrays as the environment gives them, or good and defective outcomes.
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

        Warns:
            UserWarning: The classic formula is used beyond its proof, at a share of 1 or more; the warning
                names the delta it really gives there. Claims use the larger of that and ``delta``.
        """
        super().__init__(env, epsilon, releases, Budget.of(budget), on_exhausted, noise_seed)
        require_number("delta", delta, 0, 1, open_below=True, open_above=True)
        require_choice("calibration", calibration, ("classic", "analytic"))
        require_choice("pair", pair, ("as_given", "good_and_defective"))
        self._pair = pair
        if pair == "good_and_defective":
            # Which arrays make the pair is known from the first reset on; they have the shape of any other.
            shape = next(iter(env.single_release_space.values())).shape or ()
            self.single_release_space = spaces.Dict(
                {**self.single_release_space.spaces, COVARIANCE: spaces.Box(0, np.inf, shape, np.float64)}
            )
        self._delta = delta
        self._calibration = calibration
        self._share_out()
        first = float(self._shares[0])
        if calibration == "classic" and 1 <= first < np.inf:
            true = float(gaussian_delta(first, 1 / self._multipliers[0]))
            warnings.warn(
                f"the classic calibration is proven for epsilon < 1; at the first release's share "
                f"{first:.4g} its noise gives delta {true:.3g} where {delta:g} was asked for",
                UserWarning,
                stacklevel=2,
            )

    def _share_out(self) -> None:
        super()._share_out()
        classic = self._calibration == "classic"
        noise_multiplier = classic_noise_multiplier if classic else analytic_noise_multiplier
        self._multipliers = np.array([noise_multiplier(float(share), self._delta) for share in self._shares])
        # Without noise epsilon is infinite, and no delta is needed.
        self._deltas = np.where(np.isinf(self._shares), 0.0, self._delta)
        if classic and 1 <= self._shares[0] < np.inf:
            true = np.asarray(gaussian_delta(self._shares, 1 / self._multipliers))
            self._deltas = np.maximum(self._deltas, true)

    def _describe(self, sensitivity: Sensitivity) -> list[Event]:
        if self._pair == "good_and_defective":
            pair, scale = sensitivity.pair, sensitivity.scale
            if (
                pair is None
                or not {pair.total, pair.good} <= scale.keys()
                or not np.array_equal(scale[pair.total], scale[pair.good])
            ):
                raise ValueError(
                    f"pair is 'good_and_defective', but what the environment releases, {sorted(scale)}, is not said to "
                    "count binary outcomes and good ones among them on one scale; 'as_given' is required"
                )
            self._names = pair
        return super()._describe(sensitivity)

    def _randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        if self._pair == "as_given":
            return super()._randomise(statistic, sends, index)
        total, good = statistic[self._names.total], statistic[self._names.good]
        noisy = super()._randomise({"good": good, "defective": total - good}, sends, index)
        return {self._names.total: noisy["good"] + noisy["defective"], self._names.good: noisy["good"]}

    def _announce(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        announced = super()._announce(statistic, sends, index)
        if self._pair == "as_given":
            return announced
        each = announced[variance_of(self._names.good)]
        return {**announced, variance_of(self._names.total): 2 * each, COVARIANCE: each}

    def _changes(self, sensitivity: Sensitivity) -> Mapping[Adjacency, Change]:
        if self._pair == "as_given" or sensitivity.pair is None:
            return super()._changes(sensitivity)
        return sensitivity.pair.changes

    def _event(self, share: int, changes: Mapping[Adjacency, Change]) -> Event:
        multiplier = self._multipliers[share]
        return Event(
            "gaussian",
            1 / float(multiplier) if multiplier > 0 else np.inf,
            float(self._shares[share]),
            float(self._deltas[share]),
            tuple(changes.items()),
        )

    def _draw(self, generator: np.random.Generator, out: Array) -> None:
        generator.standard_normal(out=out)
