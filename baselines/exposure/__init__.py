"""Policies for exposure fairness."""

from fedbandit_envs.baselines.exposure.fairx import FairX
from fedbandit_envs.baselines.exposure.simple import BestArm, Clairvoyant, EqualShares

__all__ = ["BestArm", "Clairvoyant", "EqualShares", "FairX"]
