"""The interface of policies: the methods that a class must have to act for the agents of a federation."""

from fedbandit_envs.core.policy_spec import Policy as Policy
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
