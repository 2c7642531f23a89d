"""Policies with small trained neural networks, which compute exploration bonuses or decide when agents send."""

from fedbandit_envs.baselines.learned.network import ItemNetwork
from fedbandit_envs.baselines.learned.policy import LearnedArms, LearnedLinear, LearnedProcurement
from fedbandit_envs.baselines.learned.sending import LearnedSend, SendingRule

__all__ = ["ItemNetwork", "LearnedArms", "LearnedLinear", "LearnedProcurement", "LearnedSend", "SendingRule"]
