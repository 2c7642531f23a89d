"""Policies for exposure fairness."""

from fedbandit_envs.baselines.exposure.fairx import FairX
from fedbandit_envs.baselines.exposure.simple import BestArm, DeservedShares, EqualShares

__all__ = ["BestArm", "DeservedShares", "EqualShares", "FairX"]
