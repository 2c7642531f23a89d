"""Policies for fair exposure in linear contextual bandits, where arms deserve shares of the pulls by their merits."""

from fedbandit_envs.baselines.exposure.fairx import BestArm, DeservedShares, EqualShares, FairX

__all__ = ["PEERS", "BestArm", "DeservedShares", "EqualShares", "FairX"]

PEERS = FairX
"""The policy of a learner's peers, unless the learner's environment is told another."""
