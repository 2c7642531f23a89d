"""Runs and their results: what is run, and what came of it."""

from fedbandit_envs.experiments.plots import plot
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.sweep import sweep

__all__ = ["RunResult", "RunSpec", "plot", "simulate", "sweep"]
