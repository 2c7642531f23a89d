"""Laplace noise: pure differential privacy, delta 0."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import AGENT, Change, Changes
from fedbandit_envs.randomness.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import GivenBudget
from fedbandit_envs.wrappers.privacy.mechanisms.additive import AdditiveMechanism, Releases
from fedbandit_envs.wrappers.privacy.privatizer import OnExhausted, Privatizer


class Laplace(AdditiveMechanism):
    """Adds Laplace noise of scale sensitivity/epsilon^z to every number in an agent's z-th release.

    Here epsilon^z is the part of epsilon that release z spends. If neighbouring histories differ in one number of the
    release, the release is (epsilon^z, 0) private (Dwork et al. 2006, Proposition 1); if they differ in several
    numbers, the epsilons add up.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.laplace import Laplace
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
        >>> Laplace(epsilon=1.0, releases=4).noise_multiplier(0.25)
        4.0
        >>> env = Privatizer(parallel_env(), Laplace(epsilon=1.0, releases=4))
    """

    takes_clip = True

    def noise_multiplier(self, share: float) -> float:
        """Returns the scale of the noise in units of sensitivity: 1/share, if the release spends epsilon ``share``."""
        return 1 / share

    def unit_variance(self, share: float) -> float:
        """Returns the variance of standard Laplace noise: 2."""
        return 2.0

    def draw(self, generator: np.random.Generator, share: float, out: Array) -> None:
        """Draws standard Laplace noise: the difference of two standard exponentials."""
        generator.standard_exponential(out=out)
        out -= generator.standard_exponential(out.shape)

    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns the privacy event of a release, with delta 0; see :meth:`AdditiveMechanism.event`.

        Clipped releases of n numbers differ by 2 C in Euclidean norm, and so by 2 C sqrt(n) in the sum of the absolute
        differences. Their event is that of one number that differs by as much, which is at most as private. It is the
        same under every adjacency.
        """
        if AGENT in changes:
            share *= sqrt(changes[AGENT].values) * changes[AGENT].norm
            changes = {adjacency: Change(1, 1.0) for adjacency in changes}
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

    examples = ({"epsilon": 1.0}, {"epsilon": 1.0, "clip": 1.5})

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        releases: Releases = None,
        budget: GivenBudget = None,
        on_exhausted: OnExhausted = "raise",
        noise_seed: Entropy | None = None,
        clip: float | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Epsilon of all releases of an agent together, if neighbours differ in one number of each release;
                it is divided among the releases. Infinity adds no noise.
            releases: The number of releases that get equal shares of ``epsilon``, or a sequence with the proportions of
                the releases' shares, such as ``[1, 2, 4]`` for shares that grow; after them no more are possible.
                None for P-FCB's decreasing shares, which depend on the horizon and have no end.
            budget: How the epsilon that agents have spent is measured and limited, see :class:`Privatizer`.
            on_exhausted: ``"raise"`` or ``"silence"``: what happens to a release beyond the budget.
            noise_seed: Secret seed of the noise; None derives the noise from the episode's seed.
            clip: The largest Euclidean norm of a release, which then is the unit of sensitivity, see
                :class:`Privatizer`; None clips nothing.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, or ``env`` is already privatized.
        """
        super().__init__(env, Laplace(epsilon, releases), budget, on_exhausted, noise_seed, clip)
