"""Randomised response: every binary outcome is flipped at random before outcomes are counted."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Change, Sensitivity, variance_of
from fedbandit_envs.randomness.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import Budget, GivenBudget
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Releases, SharingMechanism
from fedbandit_envs.wrappers.privacy.mechanisms.mechanism import Generators
from fedbandit_envs.wrappers.privacy.privatizer import OnExhausted, Privatizer


class RandomizedResponse(SharingMechanism):
    """Reports each binary outcome truly with probability e^eps/(1 + e^eps), and flipped otherwise.

    This gives local differential privacy for every single outcome (Warner 1965), since outcomes are flipped before they
    are counted. The released number of good outcomes is the unbiased estimate from the flipped ones, which need not lie
    between 0 and the total.

    The total numbers of outcomes are released without noise. So only the adjacency ``one-outcome`` is protected, and
    for any other adjacency the claimed epsilon is infinite. A good and a defective outcome add the same variance to the
    estimate, so that its variance depends on the totals only.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.randomized_response import RandomizedResponse
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
        >>> env = Privatizer(parallel_env(), RandomizedResponse(epsilon=1.0), budget={"adjacency": "one-outcome"})
    """

    def _share_out(self, horizon: int) -> None:
        super()._share_out(horizon)
        shares = self._shares
        # The probability of a flip, 1/(1 + e^eps). It is calculated directly and not as 1 - e^eps/(1 + e^eps), which
        # would lose digits; without noise (infinite epsilon) it is 0.
        self._flips = 1 / (1 + np.exp(np.minimum(shares, 700.0))) * np.isfinite(shares)
        # 1 - 2 flip = tanh(epsilon/2). The expected number of outcomes reported as good is
        # flip total + (1 - 2 flip) good, which gives the unbiased estimate of good.
        self._contrasts = np.tanh(shares / 2)
        self._variances = self._flips * (1 - self._flips) / self._contrasts**2

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode; refuses statistics other than the numbers of outcomes and of good outcomes.

        Raises:
            ValueError: The environment releases something else.
        """
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
        # A Byzantine agent may release negative counts, or more good outcomes than outcomes. Such counts are clipped,
        # since only real outcomes can be flipped.
        statistic = {name: array.astype(np.int64) for name, array in statistic.items()}
        total = np.maximum(statistic[self._names.total], 0)
        good = np.clip(statistic[self._names.good], 0, total)
        # The share gets as many axes as the counts have, so that arrays broadcast.
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
    """Flips each binary outcome with a probability given by epsilon, before counting; see :class:`.RandomizedResponse`.

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
        releases: Releases = None,
        budget: GivenBudget = None,
        on_exhausted: OnExhausted = "raise",
        noise_seed: Entropy | None = None,
    ) -> None:
        """Wraps ``env``, whose statistic must count binary outcomes (:class:`~fedbandit_envs.core.privacy.Pair`).

        Args:
            env: The environment, not yet privatized.
            epsilon: The sum of the epsilons of all releases, if neighbours differ in one outcome of each release; it
                is divided among the releases. Infinity flips no outcome.
            releases: The number of releases that get equal shares of ``epsilon``, or a sequence with the proportions of
                the releases' shares, such as ``[1, 2, 4]`` for shares that grow; after them no more are possible.
                None for P-FCB's decreasing shares, which depend on the horizon and have no end.
            budget: How the epsilon that agents have spent is measured and limited, see :class:`Privatizer`. By default
                the epsilons of all releases are added up (``basic``) under ``one-outcome``, without a limit. Since each
                outcome is in one release only, the composition ``parallel`` gives a smaller epsilon.
            on_exhausted: ``"raise"`` or ``"silence"``: what happens to a release beyond the budget.
            noise_seed: Secret seed of the noise; None derives the noise from the episode's seed.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        if budget is None:
            budget = Budget(adjacency="one-outcome")
        super().__init__(env, RandomizedResponse(epsilon, releases), budget, on_exhausted, noise_seed)
