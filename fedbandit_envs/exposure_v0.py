"""Exposure fairness for PettingZoo: ``parallel_env()``, and agent by agent ``env()``.

Both take the arguments of :class:`~fedbandit_envs.exposure.env.ExposureEnv`, which
``help(exposure_v0.ExposureEnv)`` shows, and two more, which ``help(exposure_v0.parallel_env)`` shows.
``raw_env()`` is ``env()`` without checks of the order of calls.
"""

from fedbandit_envs.exposure.env import ExposureEnv
from fedbandit_envs.views.parallel import pettingzoo_functions

parallel_env, raw_env, env = pettingzoo_functions(ExposureEnv)
