"""Policies for the procurement problem, in which agents buy units of unknown quality from producers."""

from fedbandit_envs.baselines.procurement.pfcb import PFCB
from fedbandit_envs.baselines.procurement.silent import SSUCB, Clairvoyant, OneOfEach, UniformRandom

__all__ = ["PFCB", "SSUCB", "Clairvoyant", "OneOfEach", "UniformRandom"]
