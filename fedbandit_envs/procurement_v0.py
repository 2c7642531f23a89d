"""Procurement for PettingZoo: ``parallel_env()``, and agent by agent ``env()``.

Both take the arguments of :class:`~fedbandit_envs.procurement.env.ProcurementEnv`, which
``help(procurement_v0.ProcurementEnv)`` shows, and two more, which ``help(procurement_v0.parallel_env)`` shows.
``raw_env()`` is ``env()`` without checks of the order of calls.
"""

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.views.parallel import pettingzoo_functions

parallel_env, raw_env, env = pettingzoo_functions(ProcurementEnv)
