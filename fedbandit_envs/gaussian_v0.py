"""Gaussian arms for PettingZoo: ``parallel_env()``, and agent by agent ``env()``."""

from fedbandit_envs.gaussian.env import GaussianEnv
from fedbandit_envs.views.parallel import pettingzoo_functions

parallel_env, raw_env, env = pettingzoo_functions(GaussianEnv)
