"""Policies whose weights were learned: one small network, shared over producers or arms."""

from fedbandit_envs.baselines.learned.network import Network
from fedbandit_envs.baselines.learned.policy import LearnedArms, LearnedLinear, LearnedProcurement

__all__ = ["LearnedArms", "LearnedLinear", "LearnedProcurement", "Network"]
