"""Randomised response: every binary outcome is flipped, or not, before it is counted."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.core.sensitivity import Change, Sensitivity
from fedbandit_envs.randomness.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import Budget, GivenBudget
from fedbandit_envs.wrappers.privacy.mechanisms.additive import SharingMechanism
from fedbandit_envs.wrappers.privacy.mechanisms.mechanism import Generators
from fedbandit_envs.wrappers.privacy.privatizer import OnExhausted, Privatizer


class RandomizedResponse(SharingMechanism):
    """Reports each outcome as good or defective truly with probability e^eps/(1 + e^eps), else falsely.

    That is local differential privacy of every single outcome (Warner 1965): flips happen before outcomes are
    counted. What is released as their number is the unbiased estimate, which need not lie between 0 and the total.

    Totals leave exactly as they are: ``one-outcome`` is all that is protected, and claims for any other
    adjacency are infinite. Each outcome adds as much noise to the estimate, whether it was good or not, so the variance
    depends on nothing but totals.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.randomized_response import RandomizedResponse
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
        >>> env = Privatizer(parallel_env(), RandomizedResponse(epsilon=1.0), budget={"adjacency": "one-outcome"})
    """

    def _share_out(self, horizon: int) -> None:
        super()._share_out(horizon)
        shares = self._shares
        # The probability of a flip: from the smaller one of both probabilities, which keeps its digits.
        self._flips = 1 / (1 + np.exp(np.minimum(shares, 700.0))) * np.isfinite(shares)
        # 1 - 2 flip = tanh(epsilon/2); the mean of what is reported is flip total + (1 - 2 flip) good.
        self._contrasts = np.tanh(shares / 2)
        self._variances = self._flips * (1 - self._flips) / self._contrasts**2

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode; see :meth:`Mechanism.start`."""
        self._share_out(horizon)
        pair, scale = sensitivity.pair, sensitivity.scale
        if pair is None or scale.keys() != {pair.total, pair.good}:
            raise ValueError(
                f"what the environment releases, {sorted(scale)}, is not said to count binary outcomes and good ones "
                "among them; such a pair and nothing else is required"
            )
        self._names = pair
        changes = (("one-outcome", Change(1, 1.0)),)
        self._events = [
            Event("randomised_response", share, share, 0.0, changes) for share in self._shares.tolist()
        ]
        self._generators = generators

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Flips outcomes and estimates how many were good; see :meth:`Mechanism.randomise`."""
        # A Byzantine agent's counts may be negative, or have more good outcomes than outcomes: these cannot be flipped.
        total = np.maximum(statistic[self._names.total], 0)
        good = np.clip(statistic[self._names.good], 0, total)
        # With as many axes as values have.
        share = self._share(index).reshape(index.shape + (1,) * (good.ndim - 2))
        reported = np.zeros(good.shape)
        agents = index.shape[1]
        for replica, agent in np.argwhere(sends):
            generator = self._generators[replica * agents + agent]
            flip = self._flips[share[replica, agent]]
            units, hits = total[replica, agent], good[replica, agent]
            reported[replica, agent] = (
                hits - generator.binomial(hits, flip) + generator.binomial(units - hits, flip)
            )
        flips, contrasts = self._flips[share], self._contrasts[share]
        return {
            self._names.total: total.astype(np.float64),
            self._names.good: (reported - flips * total) / contrasts,
            variance_of(self._names.total): np.zeros(total.shape),
            variance_of(self._names.good): self._variances[share] * total,
        }


class RandomizedResponsePrivatizer(Privatizer):
    """Flips each binary outcome with some probability before outcomes are counted; see :class:`.RandomizedResponse`.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import RandomizedResponsePrivatizer
        >>> env = RandomizedResponsePrivatizer(parallel_env(num_agents=2), epsilon=1.0, releases=4)
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> env.privacy().epsilon, env.privacy().adjacency
        (0.25, 'one-outcome')
    """

    examples = ({"epsilon": 1.0},)

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        releases: int | None = None,
        budget: GivenBudget = None,
        on_exhausted: OnExhausted = "raise",
        noise_seed: Entropy | None = None,
    ) -> None:
        """Wraps ``env``, whose statistic must count binary outcomes (:class:`~fedbandit_envs.core.sensitivity.Pair`).

        Args:
            env: The environment, not yet privatized.
            epsilon: Shared out over the releases, for one outcome; infinity flips none.
            releases: The number of releases that get equal shares, after which the budget is exhausted; None for
                P-FCB's decreasing shares of ``epsilon``, which depend on the horizon and have no end.
            budget: See :class:`Privatizer`. By default all releases are added up (``basic``) under ``one-outcome``,
                without a limit; since an outcome is released only once, ``parallel`` gives a smaller epsilon.
            on_exhausted: Likewise.
            noise_seed: Likewise.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        if budget is None:
            budget = Budget(adjacency="one-outcome")
        super().__init__(env, RandomizedResponse(epsilon, releases), budget, on_exhausted, noise_seed)
