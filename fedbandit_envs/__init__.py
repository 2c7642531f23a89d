"""Federated bandits with privacy and fairness, as Gymnasium and PettingZoo environments.

Importing this package registers its environments: ``gymnasium.make("FedProcurement-v0")``.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

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


# This module holds the folders together: it hands down what lower folders use of higher ones.
HANDED_DOWN.update(
    attack="fedbandit_envs.wrappers.privacy.audit:attack",
    peers="fedbandit_envs.baselines:peers_of",
    privacy_report="fedbandit_envs.wrappers.privacy.report:report_of",
    privatizer="fedbandit_envs.wrappers:Privatizer",
    server_policies="fedbandit_envs.baselines.servers:SERVERS",
    wrappers="fedbandit_envs.wrappers:WRAPPERS",
)
for _entry in REGISTRY.own.values():
    register(_entry)
