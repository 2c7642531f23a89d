"""Linear contextual bandits for PettingZoo: ``parallel_env()``, and agent by agent ``env()``.

Both take the arguments of :class:`~fedbandit_envs.linear.env.LinearEnv`, which ``help(linear_v0.LinearEnv)`` shows,
and two more, which ``help(linear_v0.parallel_env)`` shows.
``raw_env()`` is ``env()`` without checks of the order of calls.
"""

from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.views.parallel import pettingzoo_functions

parallel_env, raw_env, env = pettingzoo_functions(LinearEnv)
