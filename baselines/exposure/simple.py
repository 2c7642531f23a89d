"""Simple policies for fair exposure: equal shares, a best-arm learner, and fair shares for the true parameter."""

import numpy as np

from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.exposure.merit import share_out
from fedbandit_envs.linear.ridge import expected_rewards


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
        """Computes the equal shares, 1 / arms each; see :meth:`Policy.reset`."""
        arms = (spec.action.shape or (1,))[-1]
        self._shares = np.full((*seeds.shape, arms), 1.0 / arms)

    def act(self, observation: Arrays) -> Array:
        """Returns the share 1 / arms for each arm, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        return self._shares


class BestArm(LinUCB):
    """LinUCB as a policy of shares: the arm with the largest upper confidence bound gets all exposure.

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
        """Returns shares, 1 for the best arm and 0 for others, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        arm = super().act(observation)
        return np.asarray(np.arange(observation["contexts"].shape[2]) == arm[..., np.newaxis], np.float64)


class DeservedShares:
    """Gives every arm the share that is proportional to its merit under the true parameter theta*.

    The parameter must be in the observation, where :class:`~fedbandit_envs.wrappers.reveal.Reveal` puts it.

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
        """Checks that the observation contains the true parameter; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The observation has no ``parameter``.
        """
        if "parameter" not in spec.observation.spaces:
            raise UnfitError("the observation has no 'parameter'; wrap the environment in Reveal")
        self._merits = spec.public["merits"]

    def act(self, observation: Arrays) -> Array:
        """Returns shares proportional to the arms' merits, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        shares = expected_rewards(observation["contexts"], observation["parameter"])
        share_out(self._merits.logarithm(shares, observation.get("merit")), shares)
        return shares
