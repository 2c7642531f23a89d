"""Baselines of fair exposure: equal shares, a best-arm learner, and shares by the true parameter."""

import numpy as np

from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.exposure.merit import share_out
from fedbandit_envs.linear.expectation import expected_rewards


class EqualShares:
    """Gives all arms the same share in every round.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import exposure_v0
        >>> from fedbandit_envs.baselines.exposure import EqualShares
        >>> env = exposure_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = EqualShares()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode; see :meth:`Policy.reset`."""
        arms = (spec.action.shape or (1,))[-1]
        self._shares = np.full((*seeds.shape, arms), 1.0 / arms)

    def act(self, observation: Arrays) -> Array:
        """Returns equal shares, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        return self._shares


class BestArm(LinUCB):
    """LinUCB as a distribution: the arm with the largest upper confidence bound gets all exposure.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import exposure_v0
        >>> from fedbandit_envs.baselines.exposure import BestArm
        >>> env = exposure_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = BestArm(noise_sd=0.1)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def act(self, observation: Arrays) -> Array:
        """Returns shares of 0 and 1, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        arm = super().act(observation)
        return np.asarray(np.arange(observation["contexts"].shape[2]) == arm[..., np.newaxis], np.float64)


class DeservedShares:
    """Gives every arm the share that its merit deserves under the true parameter theta*.

    The parameter must be in its observation: see :class:`~fedbandit_envs.wrappers.reveal.Reveal`.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import exposure_v0
        >>> from fedbandit_envs.baselines.exposure import DeservedShares
        >>> from fedbandit_envs.wrappers import Reveal
        >>> env = exposure_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Reveal(env)
        >>> policy = DeservedShares()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks that theta* is revealed; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The observation has no ``parameter``.
        """
        if "parameter" not in spec.observation.spaces:
            raise UnfitError("the observation has no 'parameter'; wrap the environment in Reveal")
        self._merits = spec.public["merits"]

    def act(self, observation: Arrays) -> Array:
        """Returns deserved shares, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        shares = expected_rewards(observation["contexts"], observation["parameter"])
        share_out(self._merits.logarithm(shares, observation.get("merit")), shares)
        return shares
