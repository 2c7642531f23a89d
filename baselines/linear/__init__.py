"""Policies for linear contextual bandits, with rewards that are linear or logistic in contexts."""

from fedbandit_envs.baselines.linear.feducb import AsyncLinUCB, FedLinUCB, FedUCB
from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.linear.served import ServedLinUCB, TellingReporter

__all__ = ["PEERS", "AsyncLinUCB", "FedLinUCB", "FedUCB", "LinUCB", "ServedLinUCB", "TellingReporter"]

PEERS = LinUCB
"""The policy of a learner's peers, unless the learner's environment is told another."""
