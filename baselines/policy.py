"""The policy protocol: what a class must have to act for the agents of a federation."""

from typing import Protocol, runtime_checkable

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec


class UnfitError(ValueError):
    """A policy, or a part of one, cannot play in this environment or behind these wrappers."""


@runtime_checkable
class Policy(Protocol):
    """Acts for every agent of every replica at once.

    Row (r, j) stands for agent j of replica r. Its action depends on row (r, j) of the observations since ``reset`` and
    on its seed, and on nothing else: this is what makes a policy federated. Agents learn of each other by their
    observations only.
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets everything and prepares for an episode.

        Args:
            spec: What is public of the environment: spaces of one agent, horizon, number of agents.
            seeds: One seed a row, uint64 ``(replicas, agents)``.

        Raises:
            UnfitError: The policy needs something that this environment does not have.
        """

    def act(self, observation: Arrays) -> Array:
        """Chooses one action an agent.

        Args:
            observation: Arrays by name with leading axes ``(replicas, agents)``. They are read-only views of the
                environment's buffers and hold until its next step.

        Returns:
            Actions with leading axes ``(replicas, agents)``; the policy may reuse the array in its next call.
        """
