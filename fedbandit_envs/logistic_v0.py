"""Logistic bandits for PettingZoo: ``parallel_env()``, and agent by agent ``env()``."""

from fedbandit_envs.logistic.env import LogisticEnv
from fedbandit_envs.views.parallel import PettingZooModule

__all__ = ["env", "parallel_env", "raw_env"]

_MODULE = PettingZooModule(LogisticEnv)
parallel_env, raw_env, env = _MODULE.parallel_env, _MODULE.raw_env, _MODULE.env
