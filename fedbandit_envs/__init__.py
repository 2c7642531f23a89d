"""Federated bandits with privacy and fairness, as Gymnasium and PettingZoo environments.

Importing this package registers its environments: ``gymnasium.make("FedProcurement-v0")``.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from fedbandit_envs.basics.entry_points import HANDED_DOWN
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.registry.registration import REGISTRY, make_federation, register, register_plugins

__all__ = ["REGISTRY", "FederatedEnv", "FederatedWrapper", "Problem", "make_federation", "register_plugins"]


def __getattr__(name: str) -> ModuleType:
    """Imports ``arms_v0`` and the other modules for PettingZoo, of which no list is kept, when they are asked for."""
    if name.endswith("_v0") and find_spec(f"fedbandit_envs.{name}"):
        return import_module(f"fedbandit_envs.{name}")
    raise AttributeError(f"module 'fedbandit_envs' has no attribute {name!r}", name=name)


# This module holds the folders together: it hands down what lower folders use of higher ones. That is imported when it
# is first used, since wrappers and policies take longer to import than the environments.
def _wrappers() -> Mapping[str, type[FederatedWrapper]]:
    from fedbandit_envs.wrappers import WRAPPERS

    return WRAPPERS


def _server_policies() -> Mapping[str, Callable[..., Any]]:
    from fedbandit_envs.baselines.servers import SERVERS

    return SERVERS


def _peers(problem: str) -> Callable[[], Any] | None:
    from fedbandit_envs.baselines import peers_of

    return peers_of(problem)


def _attack() -> Callable[..., Any]:
    from fedbandit_envs.wrappers.privacy.audit import attack

    return attack


@cache
def _privatizer() -> Callable[..., Any]:
    from fedbandit_envs.wrappers import Privatizer

    return Privatizer


def _privacy_report(env: FederatedEnv, measured: Mapping[str, float]) -> Any:
    from fedbandit_envs.wrappers.privacy.report import report_of

    return report_of(env, measured)


HANDED_DOWN.update(
    privatizer=_privatizer,
    privacy_report=_privacy_report,
    wrappers=_wrappers,
    server_policies=_server_policies,
    peers=_peers,
    attack=_attack,
)
for _entry in REGISTRY.own.values():
    register(_entry)
