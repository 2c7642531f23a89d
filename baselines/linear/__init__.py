"""Policies for linear contextual bandits."""

from fedbandit_envs.baselines.linear.batched import BatchedLinUCB
from fedbandit_envs.baselines.linear.feducb import AsyncLinUCB, FedLinUCB, FedUCB
from fedbandit_envs.baselines.linear.linucb import DisjointLinUCB, HybridLinUCB, LinUCB, SupLinUCB, UniformArm
from fedbandit_envs.baselines.linear.served import ServedLinUCB, TellingReporter

__all__ = [
    "PEERS",
    "AsyncLinUCB",
    "BatchedLinUCB",
    "DisjointLinUCB",
    "FedLinUCB",
    "FedUCB",
    "HybridLinUCB",
    "LinUCB",
    "ServedLinUCB",
    "SupLinUCB",
    "TellingReporter",
    "UniformArm",
]

PEERS = LinUCB
"""The policy of a learner's peers, unless the learner's environment is told another."""
