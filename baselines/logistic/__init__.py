"""Policies for logistic bandits."""

from fedbandit_envs.baselines.logistic.fedglb import FedGLB
from fedbandit_envs.baselines.logistic.glm import UCBGLM
from fedbandit_envs.baselines.logistic.reporter import GradientReporter

__all__ = ["UCBGLM", "FedGLB", "GradientReporter"]
