"""The registry of problems and ids, collected from the problems' folders, and their registration elsewhere."""

from typing import Any

import gymnasium

import fedbandit_envs
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.stack import build
from fedbandit_envs.registry.discovery import registered
from fedbandit_envs.registry.problems import Registered, RegisteredProblem
from fedbandit_envs.views.parallel import in_turn, parallel

PROBLEMS: dict[str, RegisteredProblem] = {
    module.__name__.split(".")[-2]: module.PROBLEM for module in registered(fedbandit_envs)
}
"""Every problem of this package by the name of its folder."""

REGISTRY: dict[str, Registered] = {
    env_id: Registered(problem, env_id, dict(preset.kwargs), preset.stack)
    for problem in PROBLEMS.values()
    for env_id, preset in problem.presets.items()
}
"""Every environment of this package by its Gymnasium id."""


def make_federation(env_id: str, **changes: object) -> FederatedEnv:
    """Makes the federation of a registered id, with the wrappers that belong to it.

    Args:
        env_id: Id in :data:`REGISTRY`.
        **changes: Arguments of the environment in place of the preset's.

    Raises:
        TypeError: An argument is unknown or has the wrong type.
        ValueError: An argument is out of its range.
    """
    entry = REGISTRY[env_id]
    return build(entry.federation, entry.stack, **{**entry.kwargs, **changes})


def make_parallel(
    env_id: str, action_format: str | None = None, features: bool = False, **changes: object
) -> Any:
    """Makes a registered id for PettingZoo: the federation, or with an action format or features a view of it.

    Args:
        env_id: Id in :data:`REGISTRY`.
        action_format: See :class:`~fedbandit_envs.views.parallel.ParallelView`.
        features: See there.
        **changes: Arguments of the environment in place of the preset's.

    Raises:
        TypeError: An argument is unknown or has the wrong type.
        ValueError: An argument is out of its range.
    """
    return parallel(make_federation(env_id, **changes), action_format, features)


def make_in_turn(env_id: str, **changes: Any) -> Any:
    """Makes what :func:`make_parallel` makes, as an ``AECEnv`` whose agents act one after another."""
    return in_turn(make_parallel(env_id, **changes))


def register(entry: Registered) -> None:
    """Registers an id with Gymnasium, and with PettingZoo where it has a registry (1.27 and later)."""
    gymnasium.register(
        entry.env_id,
        entry_point="fedbandit_envs.views.single:FederationEnv",
        vector_entry_point="fedbandit_envs.views.vector:FederationVectorEnv",
        kwargs={
            "federation": entry.federation,
            "peers": entry.problem.peers,
            **({"preset_stack": entry.stack} if entry.stack else {}),
            **entry.kwargs,
        },
    )
    try:
        from pettingzoo import register as register_with_pettingzoo
    except ImportError:
        return
    for kind, maker in (("parallel", "make_parallel"), ("aec", "make_in_turn")):
        register_with_pettingzoo(
            kind,
            entry.pettingzoo,
            entry_point=f"fedbandit_envs.registry.registration:{maker}",
            kwargs={"env_id": entry.env_id},
        )


def register_all() -> None:
    """Registers every id of :data:`REGISTRY`."""
    for entry in REGISTRY.values():
        register(entry)
