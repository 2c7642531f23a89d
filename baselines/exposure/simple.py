"""What fair learners are compared with: random shares, a best-arm learner, one who knows the parameter."""

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.exposure.merit import share_out
from fedbandit_envs.linear.expectation import expected_rewards
from fedbandit_envs.spaces import Spaces


class EqualShares:
    """Gives all arms the same share, for ever."""

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Prepares for an episode; see :meth:`Policy.reset`."""
        arms = (spaces.action.shape or (1,))[-1]
        self._shares = np.full((*seeds.shape, arms), 1.0 / arms)

    def act(self, observation: Arrays) -> Array:
        """Returns equal shares, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        return self._shares


class BestArm(LinUCB):
    """LinUCB, as a distribution: what is paid best, as far as is known, gets it all."""

    def act(self, observation: Arrays) -> Array:
        """Returns shares of 0 and 1, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        arm = super().act(observation)
        return np.asarray(np.arange(observation["contexts"].shape[2]) == arm[..., np.newaxis], np.float64)


class Clairvoyant:
    """Knows theta*, and gives every arm what it deserves.

    Needs it in its observation: see :class:`~fedbandit_envs.wrappers.reveal.Reveal`.
    """

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Checks that theta* is revealed; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The observation has no ``parameter``.
        """
        if "parameter" not in spaces.observation.spaces:
            raise UnfitError("the observation has no 'parameter'; wrap the environment in Reveal")
        self._merits = spaces.public["merits"]

    def act(self, observation: Arrays) -> Array:
        """Returns deserved shares, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        shares = expected_rewards(observation["contexts"], observation["parameter"])
        share_out(self._merits.logarithm(shares, observation.get("merit")), shares)
        return shares
