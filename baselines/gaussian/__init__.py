"""Policies for federations of unlike agents with Gaussian arms."""

from fedbandit_envs.baselines.gaussian.planned import PersonalPulls, PlannedPulls
from fedbandit_envs.baselines.gaussian.reporter import PersonalReporter
from fedbandit_envs.baselines.gaussian.ucb import GaussianUCB, NamedArm

__all__ = ["GaussianUCB", "NamedArm", "PersonalPulls", "PersonalReporter", "PlannedPulls"]
