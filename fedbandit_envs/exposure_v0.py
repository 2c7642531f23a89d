"""Exposure fairness for PettingZoo: ``exposure_v0.parallel_env()``."""

from fedbandit_envs.exposure.env import ExposureEnv as parallel_env

__all__ = ["parallel_env"]
