"""Policies with small trained neural networks, which compute exploration bonuses or decide when agents send."""

from fedbandit_envs.baselines.learned.network import ItemNetwork, LearnedIndex
from fedbandit_envs.baselines.learned.sending import LearnedSend, SendingRule

__all__ = ["ItemNetwork", "LearnedIndex", "LearnedSend", "SendingRule"]
