"""The schedule of messages in Fed-FairX-LinUCB and Priv-FairX-LinUCB (thesis, Algorithm 6.1).

The gaps between messages double up to a limit, and then stay the same.
"""

from math import ceil, log
from typing import Any

from fedbandit_envs.core.federated_env import FederatedEnv


def schedule(env: FederatedEnv) -> dict[str, Any]:
    """Returns the specification of the schedule for an environment with horizon T, m agents and d-dimensional contexts.

    The longest gap between messages is ceil(T / (m d^2 ln^2(1 + T / d))) rounds (Algorithm 6.1, lines 12 to 15).
    """
    dim = (env.single_observation_space["pulled_context"].shape or (1,))[0]
    limit = ceil(env.max_cycles / (env.max_num_agents * dim**2 * log(1 + env.max_cycles / dim) ** 2))
    return {"name": "growing_then_fixed", "limit": limit}
