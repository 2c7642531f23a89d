"""Bernoulli arms for PettingZoo: ``arms_v0.parallel_env()``."""

from fedbandit_envs.arms.env import ArmsEnv as parallel_env

__all__ = ["parallel_env"]
