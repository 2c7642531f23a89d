"""Adapters, which make policies of other libraries' agents and of plain functions.

Such policies can be scored like baselines, or play the other agents around a learner.
"""

from fedbandit_envs.baselines.adapters.functions import (
    AgentFunctions,
    MABWiserPolicy,
    PredictPolicy,
    RiverPolicy,
)
from fedbandit_envs.baselines.adapters.networks import SB3Policy, TorchRLPolicy

__all__ = ["AgentFunctions", "MABWiserPolicy", "PredictPolicy", "RiverPolicy", "SB3Policy", "TorchRLPolicy"]
