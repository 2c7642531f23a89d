"""Federated bandits with privacy and fairness, as Gymnasium and PettingZoo environments.

Importing this package registers its environments: ``gymnasium.make("FedProcurement-v0")``.
"""

from fedbandit_envs import arms_v0, exposure_v0, linear_v0, procurement_v0
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.registry.registration import REGISTRY, make_federation, register_all, register_plugins

__all__ = [
    "REGISTRY",
    "FederatedEnv",
    "FederatedWrapper",
    "Problem",
    "arms_v0",
    "exposure_v0",
    "linear_v0",
    "make_federation",
    "procurement_v0",
    "register_plugins",
]

register_all()
