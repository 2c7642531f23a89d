"""Policies for logistic bandits."""

from fedbandit_envs.baselines.logistic.fedglb import UCBGLM, FedGLB, GradientReporter

__all__ = ["UCBGLM", "FedGLB", "GradientReporter"]
