"""The Gaussian mechanism, as in P-FCB, with the textbook formula for its noise and with the exact one."""

import warnings
from collections.abc import Sequence
from math import ceil
from typing import Literal

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import AGENT, COVARIANCE, Change, Changes, Sensitivity, variance_of
from fedbandit_envs.randomness.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
)
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import GivenBudget
from fedbandit_envs.wrappers.privacy.mechanisms.additive import AdditiveMechanism, Releases
from fedbandit_envs.wrappers.privacy.mechanisms.mechanism import Generators
from fedbandit_envs.wrappers.privacy.privatizer import OnExhausted, Privatizer

Calibration = Literal["classic", "analytic"]
NoisyPair = Literal["as_given", "good_and_defective"]


class Gaussian(AdditiveMechanism):
    """Adds N(0, (sensitivity * noise multiplier)^2) to every number in a release.

    The noise multiplier of an agent's z-th release is calibrated to the part of epsilon that this release spends,
    called epsilon^z; or it is given, and then the same for all releases. With the defaults this is P-FCB's mechanism
    for the procurement problem: the numbers of delivered and of good units both get noise of standard deviation
    k sqrt(2 ln(1.25/delta))/epsilon^z, where k is the capacity (Solanki et al. 2022, equations 10 and 11). If one
    quantity changes, both numbers change by up to k. So the joint sensitivity of a message is sqrt(2) k, and it spends
    epsilon^z and delta twice.

    With ``pair="good_and_defective"``, for statistics that count binary outcomes, the numbers of good and of defective
    outcomes get the noise instead, with the same variance for each, and their sum is released as the total. In
    procurement a larger quantity has the same outcomes and more. So both numbers can only grow, by k together: the
    joint sensitivity is k, and a message spends epsilon^z and delta once. The total then has twice the variance. With
    sqrt(2) times the epsilon it has the same variance and privacy as by default, and the number of good outcomes has
    half the variance. The environment defines how neighbours differ
    (:class:`~fedbandit_envs.core.privacy.Pair`). Releases then also contain ``noise_covariance``, for each entry
    the covariance of the noise in the total and in the number of good outcomes.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.gaussian import Gaussian
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
        >>> env = Privatizer(parallel_env(), Gaussian(noise_multiplier=5.0, releases=100))
    """

    takes_clip = True

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.01,
        calibration: Calibration = "classic",
        releases: Releases = None,
        pair: NoisyPair = "as_given",
        noise_multiplier: float | None = None,
    ) -> None:
        """Takes a noise multiplier, or an epsilon to calibrate it to; :class:`.GaussianPrivatizer` has the arguments.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, or both or neither of ``epsilon`` and ``noise_multiplier`` are
                given.
        """
        require_number("delta", delta, 0, 1, open_below=True, open_above=True)
        require_choice("calibration", calibration, ("classic", "analytic"))
        require_choice("pair", pair, ("as_given", "good_and_defective"))
        if noise_multiplier is not None and epsilon is None:
            require_number("noise_multiplier", noise_multiplier, 0, np.inf, open_above=True)
            # The epsilon of a release with this noise at delta, if neighbours differ in one of its numbers. It is 0 if
            # the noise is so large that delta suffices alone; shares of epsilon must be positive.
            epsilon = float(gaussian_epsilon(delta, 1 / noise_multiplier)) if noise_multiplier else np.inf
            epsilon = max(epsilon, 1e-300)
            if isinstance(releases, Sequence):
                raise ValueError(
                    f"releases is {releases!r}; with noise_multiplier, a number or None is required"
                )
        elif epsilon is None or noise_multiplier is not None:
            raise ValueError(
                f"epsilon is {epsilon!r} and noise_multiplier {noise_multiplier!r}; exactly one of them is required"
            )
        super().__init__(epsilon, releases)
        self._delta = delta
        self._classic = calibration == "classic" and noise_multiplier is None
        self._pair = pair
        self._given = noise_multiplier

    def prepare(self, env: FederatedEnv) -> None:
        """Computes the shares of epsilon and their noise; see :meth:`Mechanism.prepare`.

        Warns:
            UserWarning: The classic formula is used for a release with an epsilon of 1 or more, where it is not proven;
                the warning names the true delta of its noise. Claims use the larger of that and ``delta``.
        """
        super().prepare(env)
        place = self._shares.argmax()
        most = float(self._shares[place])
        if self._classic and 1 <= most < np.inf:
            true = float(gaussian_delta(most, 1 / self._multipliers[place]))
            warnings.warn(
                f"the classic calibration is proven for epsilon < 1; at the largest share of a release, "
                f"{most:.4g}, its noise gives delta {true:.3g} where {self._delta:g} was asked for",
                UserWarning,
                # The warning points at the line that constructs the privatizer.
                stacklevel=4,
            )

    def _share_out(self, horizon: int) -> None:
        if self._given is None:
            super()._share_out(horizon)
        else:
            self._shares = np.array([self._epsilon])
            self._calibrate()

    def noise_multiplier(self, share: float) -> float:
        """Returns the standard deviation of the noise in units of sensitivity, calibrated to ``share`` at delta."""
        if self._given is not None:
            return self._given
        calibrated = classic_noise_multiplier if self._classic else analytic_noise_multiplier
        return calibrated(share, self._delta)

    def unit_variance(self, share: float) -> float:
        """Returns the variance of standard normal noise: 1."""
        return 1.0

    def draw(self, generator: np.random.Generator, share: float, out: Array) -> None:
        """Draws standard normal noise."""
        generator.standard_normal(out=out)

    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns the privacy event of a release; see :meth:`AdditiveMechanism.event`.

        If the classic formula gives too little noise for the given delta, the event has the true, larger delta.
        """
        loss = 1 / noise_multiplier if noise_multiplier else np.inf
        # Without noise epsilon is infinite, and a delta > 0 would add nothing to such a guarantee.
        delta = self._delta if np.isfinite(loss) else 0.0
        if self._classic and 1 <= share < np.inf:
            delta = max(delta, float(gaussian_delta(share, loss)))
        return Event("gaussian", loss, share, delta, tuple(changes.items()))

    def release_space(self, released: spaces.Dict) -> spaces.Dict:
        """Returns the space of noisy releases, which also contain variances of the noise.

        With ``pair="good_and_defective"`` they contain ``noise_covariance`` as well.
        """
        space = super().release_space(released)
        if self._pair == "as_given":
            return space
        # The names of the two arrays that count trials and successes are known only after the first reset. All released
        # arrays have the same shape here, so any of them gives the shape of the covariance.
        shape = next(iter(released.values())).shape or ()
        return spaces.Dict({**space.spaces, COVARIANCE: spaces.Box(0, np.inf, shape, np.float64)})

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode; refuses ``good_and_defective`` for a statistic that does not count binary outcomes.

        Raises:
            ValueError: ``pair`` is ``"good_and_defective"``, and the environment releases other arrays than the counts
                of outcomes and of good outcomes, or these have different sensitivities.
        """
        if self._pair == "good_and_defective":
            pair, scale = sensitivity.pair, sensitivity.scale
            if (
                pair is None
                or scale.keys() != {pair.total, pair.good}
                or not np.array_equal(scale[pair.total], scale[pair.good])
            ):
                raise ValueError(
                    f"pair is 'good_and_defective', but what the environment releases, {sorted(scale)}, is not said to "
                    "count binary outcomes and good ones among them on one scale; 'as_given' is required"
                )
            self._outcomes = pair
        super().start(sensitivity, horizon, generators)

    def _changes(self, sensitivity: Sensitivity) -> Changes:
        changes = sensitivity.changes if self._pair == "as_given" else self._outcomes.changes
        if AGENT not in changes:
            return changes
        # Clipped releases may differ in all entries and in each by twice its scale. A Gaussian release that differs by
        # a norm of k scales is as private as k^2 releases that differ by one, so basic composition counts k^2.
        return {
            adjacency: Change(max(1, ceil(change.norm**2 - 1e-9)), change.norm)
            for adjacency, change in changes.items()
        }

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns the statistic with noise; with ``pair="good_and_defective"`` these two counts get the noise.

        The release then holds their noisy sum (the total) and the noisy good count. See :meth:`Mechanism.randomise`.
        """
        if self._pair == "as_given":
            return super().randomise(statistic, sends, index)
        total, good = self._outcomes.total, self._outcomes.good
        outcomes = {good: statistic[good], "defective": statistic[total] - statistic[good]}
        noisy = super().randomise(outcomes, sends, index)
        each = noisy[variance_of(good)]
        return {
            total: noisy[good] + noisy["defective"],
            good: noisy[good],
            variance_of(total): 2 * each,
            variance_of(good): each,
            COVARIANCE: each,
        }


class GaussianPrivatizer(Privatizer):
    """Adds independent Gaussian noise to every release, as P-FCB does; see :class:`.Gaussian`.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import GaussianPrivatizer
        >>> env = GaussianPrivatizer(parallel_env(num_agents=2), epsilon=0.5, delta=0.01, releases=1)
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> claim = env.privacy()  # twice the promise for one value: quantity and outcome change together
        >>> claim.epsilon, claim.delta
        (1.0, 0.02)
    """

    examples = (
        {"epsilon": 0.9},
        {"epsilon": 0.9, "calibration": "analytic", "noise_seed": 2**64},
        {"epsilon": 0.9, "clip": 1.5},
    )

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float | None = None,
        delta: float = 0.01,
        calibration: Calibration = "classic",
        releases: Releases = None,
        pair: NoisyPair = "as_given",
        budget: GivenBudget = None,
        on_exhausted: OnExhausted = "raise",
        noise_seed: Entropy | None = None,
        noise_multiplier: float | None = None,
        clip: float | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Epsilon of all releases of an agent together, if neighbours differ in one number of each release;
                it is divided among the releases. Infinity adds no noise. None if ``noise_multiplier`` is given.
            delta: Delta of each single release, if neighbours differ in one of its numbers.
            calibration: ``"classic"``, the paper's formula, or ``"analytic"``, the smallest noise that suffices.
            releases: The number of releases that get equal shares of ``epsilon``, or a sequence with the proportions of
                the releases' shares, such as ``[1, 2, 4]`` for shares that grow; after them no more are possible.
                None for the paper's decreasing shares, which depend on the horizon and have no end.
            pair: Which numbers get the noise: the arrays as the environment releases them (``"as_given"``), or the
                numbers of good and of defective outcomes (``"good_and_defective"``).
            budget: How the epsilon that agents have spent is measured and limited, see :class:`Privatizer`.
            on_exhausted: ``"raise"`` or ``"silence"``: what happens to a release beyond the budget.
            noise_seed: Secret seed of the noise; None derives the noise from the episode's seed.
            noise_multiplier: Standard deviation of the noise of every release in units of sensitivity, >= 0, instead
                of calibrating it to ``epsilon``. The epsilon of a release then follows from it and ``delta``.
            clip: The largest Euclidean norm of a release, which then is the unit of sensitivity, see
                :class:`Privatizer`; None clips nothing. Not with ``"good_and_defective"``.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.

        Warns:
            UserWarning: The classic formula is used for a release with an epsilon of 1 or more, where it is not proven;
                the warning names the true delta of its noise. Claims use the larger of that and ``delta``.
        """
        mechanism = Gaussian(epsilon, delta, calibration, releases, pair, noise_multiplier)
        super().__init__(env, mechanism, budget, on_exhausted, noise_seed, clip)
