"""When agents send in Fed-FairX-LinUCB and Priv-FairX-LinUCB: gaps that double, then stay (thesis, Algorithm 6.1)."""

from math import ceil, log
from typing import Any

from fedbandit_envs.core.federated_env import FederatedEnv


def schedule(env: FederatedEnv) -> dict[str, Any]:
    """Returns the schedule's specification for the horizon T, the m agents and the d dimensions of an environment.

    The longest gap between messages is ceil(T / (m d^2 ln^2(1 + T / d))) (lines 12 to 15).
    """
    dim = (env.single_observation_space["pulled_context"].shape or (1,))[0]
    limit = ceil(env.max_cycles / (env.max_num_agents * dim**2 * log(1 + env.max_cycles / dim) ** 2))
    return {"name": "growing_then_fixed", "limit": limit}
