"""When agents send in Fed-FairX-LinUCB and Priv-FairX-LinUCB: gaps that double, then stay (thesis, Algorithm 6.1)."""

from math import ceil, log
from typing import Any

from fedbandit_envs.core.federated_env import FederatedEnv


def longest_gap(horizon: int, agents: int, dim: int) -> int:
    """Returns the longest gap G = ceil(T / (m d^2 ln^2(1 + T / d))) between messages (lines 12 to 15).

    Args:
        horizon: T.
        agents: m.
        dim: d.
    """
    return ceil(horizon / (agents * dim**2 * log(1 + horizon / dim) ** 2))


def schedule(env: FederatedEnv) -> dict[str, Any]:
    """Returns the schedule's specification for the horizon, agents and dimension of an environment."""
    dim = (env.single_observation_space["pulled_context"].shape or (1,))[0]
    return {"name": "growing_then_fixed", "limit": longest_gap(env.max_cycles, env.max_num_agents, dim)}
