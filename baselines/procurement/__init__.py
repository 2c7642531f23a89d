"""Policies for the procurement problem, in which agents buy units of unknown quality from producers."""

from fedbandit_envs.baselines.procurement.pfcb import PFCB
from fedbandit_envs.baselines.procurement.silent import SSUCB, Clairvoyant, OneOfEach, UniformRandom

__all__ = ["PEERS", "PFCB", "SSUCB", "Clairvoyant", "OneOfEach", "UniformRandom"]

PEERS = SSUCB
"""The policy of a learner's peers, unless the learner's environment is told another."""
