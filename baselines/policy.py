"""The policy protocol: how anything that acts plugs into a federation."""

from typing import Protocol

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.spaces import Spaces


class UnfitError(ValueError):
    """A policy cannot play behind these wrappers, or in this environment."""


class Policy(Protocol):
    """Acts for every agent of every replica at once, row by row.

    Row (r, j) of the action depends on row (r, j) of the observations seen since ``reset`` and on its seed, on
    nothing else: that is what "federated" means in code. What agents learn of each other reaches them through
    their observations.
    """

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets everything and prepares for an episode.

        Args:
            spaces: One agent's spaces, and the horizon.
            seeds: One seed a row, uint64 ``(replicas, agents)``.

        Raises:
            UnfitError: The policy needs something that these spaces do not have.
        """

    def act(self, observation: Arrays) -> Array:
        """Chooses one action an agent.

        Args:
            observation: Arrays by name with leading axes ``(replicas, agents)``; they are the environment's
                buffers, cannot be written to and hold until its next step.

        Returns:
            Actions with leading axes ``(replicas, agents)``; the policy may reuse the array at its next call.
        """
