"""Gaussian arms for PettingZoo: ``parallel_env()``, and agent by agent ``env()``."""

from fedbandit_envs.gaussian.env import GaussianEnv
from fedbandit_envs.views.parallel import PettingZooModule

__all__ = ["env", "parallel_env", "raw_env"]

_MODULE = PettingZooModule(GaussianEnv)
parallel_env, raw_env, env = _MODULE.parallel_env, _MODULE.raw_env, _MODULE.env
