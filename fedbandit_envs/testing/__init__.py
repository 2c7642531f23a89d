"""Conformance: what every environment, wrapper and policy of this house must hold, to be run against one's own.

``check_federation(MyEnv)``, ``check_wrapper(MyWrapper, MyEnv)`` and ``check_policy(MyPolicy, MyEnv)`` return where all
is well. Else they raise an ``AssertionError`` that says what was found, what is required and where to mend it.
"""

from fedbandit_envs.testing.federation import check_federation
from fedbandit_envs.testing.policy import check_policy
from fedbandit_envs.testing.wrapper import check_wrapper

__all__ = ["check_federation", "check_policy", "check_wrapper"]
