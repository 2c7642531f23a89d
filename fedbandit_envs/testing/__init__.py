"""Conformance checks for your own environments, wrappers, policies, reporters and server policies.

``check_federation(MyEnv)``, ``check_wrapper(MyWrapper, MyEnv)``, ``check_policy(MyPolicy, MyEnv)``,
``check_reporter(MyReporter, MyEnvWithMessages)`` and ``check_server_policy(MyServerPolicy(), MyEnv)`` return if all
requirements hold. Otherwise they raise an ``AssertionError`` with what was found, what is required and where to correct
it.

Example:
    >>> from fedbandit_envs import arms_v0
    >>> from fedbandit_envs.baselines.arms import UCB1
    >>> check_policy(UCB1, lambda: arms_v0.parallel_env(num_agents=2, num_arms=3))
"""

from fedbandit_envs.testing.federation import check_federation, check_wrapper
from fedbandit_envs.testing.policy import check_policy, check_reporter, check_server_policy

__all__ = ["check_federation", "check_policy", "check_reporter", "check_server_policy", "check_wrapper"]
