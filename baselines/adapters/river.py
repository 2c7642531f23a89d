"""A bandit policy of river for each row, as a policy."""

from collections.abc import Callable, Mapping
from typing import Any

from fedbandit_envs.baselines.adapters.row_learners import RowLearners
from fedbandit_envs.basics.checks import require_choice


def _plays(member: Any, base: Any) -> bool:
    """Returns whether a member of ``river.bandit`` is a class of policies without contexts."""
    return (
        isinstance(member, type)
        and issubclass(member, base.Policy)
        and not issubclass(member, base.ContextualPolicy)
    )


class RiverPolicy(RowLearners):
    """Pulls arms by ``river.bandit``; arms may sleep.

    Example:
        >>> from fedbandit_envs.baselines.adapters import RiverPolicy
        >>> policy = RiverPolicy("UCB", {"delta": 1.0})  # doctest: +SKIP
    """

    def __init__(
        self, policy: str | Callable[[int], Any] = "UCB", parameters: Mapping[str, Any] | None = None
    ) -> None:
        """Sets the policy.

        Args:
            policy: Name of a class of ``river.bandit``; or a function that makes a policy, given a seed, for those
                whose parameters are objects of river's.
            parameters: Arguments of the class, besides its seed.

        Raises:
            ImportError: river is not installed.
            ValueError: river has no such class.
        """
        try:
            from river import bandit
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{error.name} cannot be imported; RiverPolicy needs: python -m pip install river"
            ) from error
        known = [name for name in bandit.__all__ if _plays(getattr(bandit, name), bandit.base)]
        if isinstance(policy, str):
            require_choice("policy", policy, known)

        def make(arms: int, seed: int) -> Any:
            if not isinstance(policy, str):
                return policy(seed)
            return getattr(bandit, policy)(**(parameters or {}), seed=seed)

        super().__init__("river", make, choose="pull", learn="update")
