"""Linear bandits with fixed features for PettingZoo: ``parallel_env()``, and agent by agent ``env()``."""

from fedbandit_envs.fixed.env import FixedEnv
from fedbandit_envs.views.parallel import PettingZooModule

__all__ = ["env", "parallel_env", "raw_env"]

_MODULE = PettingZooModule(FixedEnv)
parallel_env, raw_env, env = _MODULE.parallel_env, _MODULE.raw_env, _MODULE.env
