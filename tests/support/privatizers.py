"""The privatizers that share epsilon out, and a small market to put them around."""

import numpy as np

from fedbandit_envs.core.federated_env import BatchStep, FederatedEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import (
    GaussianPrivatizer,
    LaplacePrivatizer,
    RandomizedResponsePrivatizer,
)

PRIVATIZERS = [GaussianPrivatizer, LaplacePrivatizer, RandomizedResponsePrivatizer]
VARIANTS = [
    *PRIVATIZERS,
    lambda env, epsilon, **plan: GaussianPrivatizer(env, epsilon, pair="good_and_defective", **plan),
]


def small(**kwargs) -> ProcurementEnv:
    return ProcurementEnv(num_agents=3, num_producers=4, instance_seed=1, **{"max_cycles": 50, **kwargs})


def play(env: FederatedEnv, rounds: int = 5) -> BatchStep:
    """Buys at capacity for some rounds; returns the last step."""
    for _ in range(rounds):
        action = env.sensitivity().scale["delivered"].astype(np.int64)
        step = env.step_batch(action)
    return step


def everyone(env: FederatedEnv) -> np.ndarray:
    return np.ones(env.sensitivity().scale["delivered"].shape[:2], np.bool_)
