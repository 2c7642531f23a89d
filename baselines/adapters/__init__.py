"""Adapters, which make policies of other libraries' agents and of plain functions.

Such policies can be scored like baselines, or play the other agents around a learner.
"""

from fedbandit_envs.baselines.adapters.functions import AgentFunctions
from fedbandit_envs.baselines.adapters.mabwiser import MABWiserPolicy
from fedbandit_envs.baselines.adapters.predictor import PredictPolicy
from fedbandit_envs.baselines.adapters.river import RiverPolicy
from fedbandit_envs.baselines.adapters.sb3 import SB3Policy
from fedbandit_envs.baselines.adapters.torchrl import TorchRLPolicy

__all__ = ["AgentFunctions", "MABWiserPolicy", "PredictPolicy", "RiverPolicy", "SB3Policy", "TorchRLPolicy"]
