"""The interface of policies: the methods that a class must have to act for the agents of a federation."""

from typing import Protocol, runtime_checkable

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec


class UnfitError(ValueError):
    """An error that is raised if a policy, or a part of one, cannot play in an environment with its wrappers."""


def downloads_of(dtype: str, **shapes: list[int]) -> dict[str, dict[str, object]]:
    """Returns the declaration of arrays that a server policy answers, given their dtype and their shapes by name."""
    return {name: {"shape": shape, "dtype": dtype} for name, shape in shapes.items()}


def require_uploads(spec: PolicySpec, *names: str) -> None:
    """Raises :class:`UnfitError` unless agents' messages have arrays of these names."""
    if not set(names) <= spec.release.spaces.keys():
        raise UnfitError(f"agents release {sorted(spec.release)}; Messages with {sorted(names)} are required")


def require_around(spec: PolicySpec, fits: bool, needed: str) -> None:
    """Raises :class:`UnfitError` with what is needed around the environment, unless it fits."""
    if not fits:
        raise UnfitError(
            f"{needed} is required around the environment; its observations are {sorted(spec.observation.spaces)} and "
            f"its actions {spec.action}"
        )


def require_pool(spec: PolicySpec) -> None:
    """Raises :class:`UnfitError` unless contexts come from a pool."""
    if "pool_index" not in spec.observation.spaces:
        raise UnfitError("contexts are drawn anew in every round; a pool, or fixed ones, are required")


def require_fixed(spec: PolicySpec) -> None:
    """Raises :class:`UnfitError` unless an arm is the same arm in all rounds."""
    if not spec.public.get("fixed"):
        raise UnfitError("contexts change from round to round; fixed ones, or 'separated', are required")


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
