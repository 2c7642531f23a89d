"""Policies for linear bandits with fixed features."""

from fedbandit_envs.baselines.fixed.reporter import PhasedReporter
from fedbandit_envs.baselines.fixed.ucb import LocalUCB

__all__ = ["LocalUCB", "PhasedReporter"]
