"""The registry of environment ids, collected from problems' folders and plug-ins, and their registration.

Ids are registered with Gymnasium and PettingZoo.
"""

from importlib import import_module
from typing import Any

import gymnasium

import fedbandit_envs
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import build
from fedbandit_envs.registry.plugins import Plugin, Registry, registered
from fedbandit_envs.registry.problems import Registered, RegisteredProblem
from fedbandit_envs.views.parallel import in_turn, parallel


def _ids(problem: RegisteredProblem) -> dict[str, Registered]:
    return {
        env_id: Registered(problem, env_id, dict(preset.kwargs), preset.stack)
        for env_id, preset in problem.presets.items()
    }


def _ids_of_plugin(plugin: Plugin) -> dict[str, Registered]:
    ids = _ids(plugin.content.PROBLEM)
    if taken := sorted(ids.keys() & gymnasium.registry.keys()):
        raise ValueError(f"Gymnasium has an environment {taken[0]!r} already")
    for entry in ids.values():
        register(entry)
    return ids


PROBLEMS: dict[str, RegisteredProblem] = {
    module.__name__.split(".")[-2]: module.PROBLEM for module in registered(fedbandit_envs)
}
"""Every problem of this project by the name of its folder."""

REGISTRY: Registry[Registered] = Registry(
    {env_id: entry for problem in PROBLEMS.values() for env_id, entry in _ids(problem).items()},
    problems=_ids_of_plugin,
)
"""Every environment by its Gymnasium id; a plug-in of the group ``problems`` names a module that has ``PROBLEM``."""


def problem_of(plugin: Plugin) -> RegisteredProblem:
    """Returns the problem that a plug-in of the group ``problems`` adds.

    Raises:
        ValueError: :data:`REGISTRY` lacks one of the problem's environment ids, or has another problem under it.
    """
    problem: RegisteredProblem = plugin.content.PROBLEM
    if any(env_id not in REGISTRY or REGISTRY[env_id].problem is not problem for env_id in problem.presets):
        raise ValueError("its environment ids are left out")
    return problem


def find_registered(name: str) -> Registered:
    """Returns the registered environment of a name.

    Args:
        name: An id in :data:`REGISTRY`; an id of a plug-in behind its package, ``"mybandits:MyEnv-v0"``; or the entry
            point ``"module:Class"`` of an environment, which then has no preset.

    Raises:
        ValueError: There is no such id.
        ImportError: There is no such module.
        AttributeError: The module has no such attribute.
        TypeError: The entry point names no environment.
    """
    module, colon, attribute = name.rpartition(":")
    if colon and attribute.isidentifier():
        federation = resolve(name)
        if not (isinstance(federation, type) and issubclass(federation, FederatedEnv)):
            raise TypeError(f"env_id is {name!r}; an id or the entry point of a FederatedEnv is required")
        return Registered(RegisteredProblem(name), name, {}, ())
    if colon:
        import_module(module)
    require_choice("env_id", attribute, REGISTRY)
    return REGISTRY[attribute]


def make_federation(env_id: str, **changes: object) -> FederatedEnv:
    """Makes the federation of a registered id, with the wrappers that belong to it.

    Args:
        env_id: See :func:`find_registered`.
        **changes: Arguments of the environment in place of the preset's.

    Raises:
        TypeError: An argument is unknown or has the wrong type.
        ValueError: An argument is out of its range.
    """
    entry = find_registered(env_id)
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
    """Makes a registered id for PettingZoo as an ``AECEnv``, whose agents act one after another.

    Args:
        env_id: Id in :data:`REGISTRY`.
        **changes: Further arguments of :func:`make_parallel`, which makes the environment.
    """
    return in_turn(make_parallel(env_id, **changes))


def register(entry: Registered) -> None:
    """Registers an id with Gymnasium, and with PettingZoo where it has a registry (1.27 and later)."""
    gymnasium.register(
        entry.env_id,
        entry_point="fedbandit_envs.views.gymnasium_env:FederationEnv",
        vector_entry_point="fedbandit_envs.views.gymnasium_env:FederationVectorEnv",
        kwargs={
            "federation": entry.federation,
            **({"peers": entry.problem.peers} if entry.problem.peers else {}),
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
    """Registers every id of this project."""
    for entry in REGISTRY.own.values():
        register(entry)


def register_plugins() -> None:
    """Registers the ids of all installed plug-ins with Gymnasium and PettingZoo.

    The ``__init__.py`` of a plug-in's package calls it, so that ``gymnasium.make("mybandits:MyEnv-v0")`` works.
    """
    len(REGISTRY)
