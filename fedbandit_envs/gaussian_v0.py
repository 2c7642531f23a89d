"""Gaussian arms for PettingZoo: ``parallel_env()``, and agent by agent ``env()``.

Both take the arguments of :class:`~fedbandit_envs.gaussian.env.GaussianEnv`, which
``help(gaussian_v0.GaussianEnv)`` shows, and two more, which ``help(gaussian_v0.parallel_env)`` shows.
``raw_env()`` is ``env()`` without checks of the order of calls.
"""

from fedbandit_envs.gaussian.env import GaussianEnv
from fedbandit_envs.views.parallel import pettingzoo_functions

parallel_env, raw_env, env = pettingzoo_functions(GaussianEnv)
