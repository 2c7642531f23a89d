"""Bernoulli arms for PettingZoo: ``parallel_env()``, and agent by agent ``env()``."""

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.views.parallel import pettingzoo_functions

parallel_env, raw_env, env = pettingzoo_functions(ArmsEnv)
