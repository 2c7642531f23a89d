"""Laplace noise: pure differential privacy, delta 0."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.sensitivity import Changes
from fedbandit_envs.randomness.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import GivenBudget
from fedbandit_envs.wrappers.privacy.mechanisms.additive import AdditiveMechanism
from fedbandit_envs.wrappers.privacy.privatizer import OnExhausted, Privatizer


class Laplace(AdditiveMechanism):
    """Adds Laplace noise of scale sensitivity/epsilon^z to every value of the z-th release, epsilon^z being its share.

    One value alone is then (epsilon^z, 0) private (Dwork et al. 2006, Proposition 1); values that change together add
    up.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.laplace import Laplace
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
        >>> Laplace(epsilon=1.0, releases=4).noise_multiplier(0.25)
        4.0
        >>> env = Privatizer(parallel_env(), Laplace(epsilon=1.0, releases=4))
    """

    def noise_multiplier(self, share: float) -> float:
        """Returns 1/share."""
        return 1 / share

    def unit_variance(self, share: float) -> float:
        """Returns 2."""
        return 2.0

    def draw(self, generator: np.random.Generator, share: float, out: Array) -> None:
        """Draws standard Laplace noise: the difference of two standard exponentials."""
        generator.standard_exponential(out=out)
        out -= generator.standard_exponential(out.shape)

    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns a release of pure differential privacy."""
        return Event("laplace", share, share, 0.0, tuple(changes.items()))


class LaplacePrivatizer(Privatizer):
    """Adds independent Laplace noise to every release: pure differential privacy; see :class:`.Laplace`.

    Example:
        >>> from fedbandit_envs.procurement_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import LaplacePrivatizer
        >>> env = LaplacePrivatizer(parallel_env(num_agents=2), epsilon=1.0, releases=4)
        >>> _ = env.reset(seed=0)
        >>> _ = env.release([[True, True]])
        >>> env.privacy().delta
        0.0
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
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Shared out over the releases, for one value; infinity adds no noise.
            releases: The number of releases that get equal shares, after which the budget is exhausted; None for
                P-FCB's decreasing shares of ``epsilon``, which depend on the horizon and have no end.
            budget: See :class:`Privatizer`.
            on_exhausted: Likewise.
            noise_seed: Likewise.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        super().__init__(env, Laplace(epsilon, releases), budget, on_exhausted, noise_seed)
