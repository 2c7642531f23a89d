"""What is registered, as data, and its registration with Gymnasium and PettingZoo."""

from typing import Any, NamedTuple

import gymnasium

_PROCUREMENT = "fedbandit_envs.procurement.env:ProcurementEnv"
_SS_UCB = "fedbandit_envs.baselines.procurement.silent:SSUCB"
_LINEAR = "fedbandit_envs.linear.env:LinearEnv"
_LIN_UCB = "fedbandit_envs.baselines.linear.linucb:LinUCB"


class Registered(NamedTuple):
    """One id.

    Attributes:
        federation: Entry point of the federated environment's class.
        pettingzoo: Id in PettingZoo's registry.
        peers: Entry point of the policy that plays a learner's peers by default.
        kwargs: The preset: arguments of the federated environment, all of them writable as JSON.
    """

    federation: str
    pettingzoo: str
    peers: str
    kwargs: dict[str, Any]


REGISTRY: dict[str, Registered] = {
    "FedProcurement-v0": Registered(_PROCUREMENT, "fedbandit/procurement_v0", _SS_UCB, {}),
    "FedProcurementNormal-v0": Registered(
        _PROCUREMENT, "fedbandit/procurement_normal_v0", _SS_UCB, {"market": "normal"}
    ),
    "FedProcurementHomogeneous-v0": Registered(
        _PROCUREMENT, "fedbandit/procurement_homogeneous_v0", _SS_UCB, {"homogeneous": True}
    ),
    "FedLinear-v0": Registered(_LINEAR, "fedbandit/linear_v0", _LIN_UCB, {}),
    "FedLinearBall-v0": Registered(
        _LINEAR, "fedbandit/linear_ball_v0", _LIN_UCB, {"contexts": "unit_ball", "reward": "normal"}
    ),
    "FedLinearCube-v0": Registered(
        _LINEAR, "fedbandit/linear_cube_v0", _LIN_UCB, {"contexts": "hypercube", "reward": "normal"}
    ),
}
"""Every environment of this package by its Gymnasium id."""

MAX_EPISODE_STEPS = 1000
"""Registered horizon: what ``gymnasium.make`` uses unless told otherwise."""


def register_all() -> None:
    """Registers every id with Gymnasium, and with PettingZoo where it has a registry (1.27 and later)."""
    for env_id, entry in REGISTRY.items():
        gymnasium.register(
            env_id,
            entry_point="fedbandit_envs.views.single:FederationEnv",
            vector_entry_point="fedbandit_envs.views.vector:FederationVectorEnv",
            max_episode_steps=MAX_EPISODE_STEPS,
            kwargs={"federation": entry.federation, "peers": entry.peers, **entry.kwargs},
        )
    try:
        from pettingzoo import register
    except ImportError:
        return
    for entry in REGISTRY.values():
        register(
            "parallel",
            entry.pettingzoo,
            entry_point=entry.federation,
            max_cycles=MAX_EPISODE_STEPS,
            kwargs=entry.kwargs,
        )
