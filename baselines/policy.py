"""The interface of policies: the methods that a class must have to act for the agents of a federation."""

from typing import Protocol, runtime_checkable

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec, Reporter

__all__ = ["Policy", "Reporter", "UnfitError"]


class UnfitError(ValueError):
    """An error that is raised if a policy, or a part of one, cannot play in an environment with its wrappers."""


@runtime_checkable
class Policy(Protocol):
    """The interface of policies, which choose the actions of all agents in all replicas of a federation at once.

    Arrays have the leading axes ``(replicas, agents)``, and row (r, j) is that of agent j in replica r. The action of
    row (r, j) depends only on row (r, j) of the observations since ``reset`` and on the seed of that row. This is what
    makes a policy federated: agents learn about each other through their own observations only.
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets everything and prepares for an episode.

        Args:
            spec: Public description of the environment: spaces of one agent, horizon, number of agents.
            seeds: One seed for each agent of each replica, uint64 ``(replicas, agents)``.

        Raises:
            UnfitError: The policy needs something that this environment does not have.
        """

    def act(self, observation: Arrays) -> Array:
        """Chooses one action for each agent of each replica.

        Args:
            observation: Arrays by name with leading axes ``(replicas, agents)``. They are read-only views of the
                environment's buffers, which the environment overwrites in its next step.

        Returns:
            Actions with leading axes ``(replicas, agents)``; the policy may reuse the array in its next call.
        """
