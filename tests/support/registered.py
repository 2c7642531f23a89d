"""What is registered, as parameters of tests: small instances of every environment, and every way to look at them."""

from collections.abc import Callable
from typing import Any

import pytest

from fedbandit_envs.entry_points import resolve
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.registration import REGISTRY

SMALL: dict[type[FederatedEnv], dict[str, Any]] = {
    LinearEnv: {"num_arms": 7, "dim": 3},
    ProcurementEnv: {"num_producers": 5},
}
"""Arguments that make small instances, by environment."""

LISTENERS: dict[type[FederatedEnv], str] = {
    LinearEnv: "fedbandit_envs.baselines.linear.feducb:FedUCB",
    ProcurementEnv: "fedbandit_envs.baselines.procurement.pfcb:PFCB",
}
"""Policies that make something of what they hear."""


def views(stack: Callable[[Any], list[Any]]) -> list[Any]:
    """Returns ids with arguments of ``gymnasium.make``.

    Args:
        stack: Makes a stack of wrappers for a schedule.
    """
    parameters = []
    for env_id, entry in REGISTRY.items():
        federation = resolve(entry.federation)
        formats = list(federation(**entry.kwargs).action_formats)
        for name, view in {
            "learner": {},
            "joint": {"joint": True},
            **{name: {"action_format": name} for name in formats[1:]},
            f"{formats[-1]}-joint": {"action_format": formats[-1], "joint": True},
            "stack": {"stack": stack("every_round"), "peers": LISTENERS[federation]},
            "stack-joint": {"stack": stack({"name": "fixed_gap", "gap": 2}), "joint": True},
            "stack-asking": {"stack": stack("on_request"), "action_format": formats[1]},
            "stack-asking-listeners": {"stack": stack("on_request"), "peers": LISTENERS[federation]},
        }.items():
            parameters.append(pytest.param(env_id, view, id=f"{env_id}-{name}"))
    return parameters


def small(env_id: str) -> dict[str, Any]:
    """Returns arguments that make a small instance of a registered environment."""
    return SMALL[resolve(REGISTRY[env_id].federation)]
