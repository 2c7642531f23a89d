"""Runs and their results: simulations, sweeps, pictures, and files in which long runs are kept."""

# Modules have the names of some of these functions. All are imported here, so that names stand for the functions.
from fedbandit_envs.experiments.plots import plot
from fedbandit_envs.experiments.result import RunResult, simulate
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.sweep import summary, sweep

__all__ = ["RunResult", "RunSpec", "plot", "simulate", "summary", "sweep"]
