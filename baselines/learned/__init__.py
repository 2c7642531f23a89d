"""Policies whose weights were learned: how far to trust an estimate, item by item, and when to send."""

from fedbandit_envs.baselines.learned.network import Network
from fedbandit_envs.baselines.learned.policy import LearnedArms, LearnedLinear, LearnedProcurement
from fedbandit_envs.baselines.learned.sending import LearnedSend, SendingRule

__all__ = ["LearnedArms", "LearnedLinear", "LearnedProcurement", "LearnedSend", "Network", "SendingRule"]
