"""Procurement for PettingZoo: ``parallel_env()``, and agent by agent ``env()``."""

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.views.parallel import pettingzoo_functions

parallel_env, raw_env, env = pettingzoo_functions(ProcurementEnv)
