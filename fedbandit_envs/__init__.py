"""Federated bandits with privacy and fairness, as Gymnasium and PettingZoo environments.

Importing this package registers its environments: ``gymnasium.make("FedProcurement-v0")``.
"""

from fedbandit_envs import linear_v0, procurement_v0
from fedbandit_envs.federation import FederatedEnv, FederatedWrapper
from fedbandit_envs.registration import REGISTRY, register_all

__all__ = ["REGISTRY", "FederatedEnv", "FederatedWrapper", "linear_v0", "procurement_v0"]

register_all()
