"""Policies for federations of unlike agents with Gaussian arms."""

from fedbandit_envs.baselines.gaussian.planned import PersonalPulls, PlannedPulls
from fedbandit_envs.baselines.gaussian.reporter import PersonalReporter
from fedbandit_envs.baselines.gaussian.ucb import GaussianUCB, NamedArm

__all__ = ["PEERS", "GaussianUCB", "NamedArm", "PersonalPulls", "PersonalReporter", "PlannedPulls"]

PEERS = GaussianUCB
"""The policy of a learner's peers, unless the learner's environment is told another."""
