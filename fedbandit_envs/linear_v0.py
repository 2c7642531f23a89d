"""Linear contextual bandits for PettingZoo: ``linear_v0.parallel_env()``."""

from fedbandit_envs.linear.env import LinearEnv as parallel_env

__all__ = ["parallel_env"]
