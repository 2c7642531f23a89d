"""Bernoulli arms for PettingZoo: ``parallel_env()``, and agent by agent ``env()``.

Both take the arguments of :class:`~fedbandit_envs.arms.env.ArmsEnv`, which ``help(arms_v0.ArmsEnv)`` shows,
and two more, which ``help(arms_v0.parallel_env)`` shows.
``raw_env()`` is ``env()`` without checks of the order of calls.
"""

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.views.parallel import pettingzoo_functions

parallel_env, raw_env, env = pettingzoo_functions(ArmsEnv)
