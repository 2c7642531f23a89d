"""What is registered, as parameters of tests: small instances of every problem, and every way to look at them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.registry.problems import RegisteredProblem
from fedbandit_envs.registry.registration import REGISTRY, make_federation

PROBLEMS: dict[type[FederatedEnv], RegisteredProblem] = {
    resolve(entry.federation): entry.problem for entry in REGISTRY.values()
}
"""Every registered problem by its class."""

FIRST = {next(iter(entry.presets)) for entry in PROBLEMS.values()}
"""The first id of every problem."""

FIRST_IDS = [pytest.param(env_id, marks=() if env_id in FIRST else pytest.mark.slow) for env_id in REGISTRY]
"""All ids; those that are not their problem's first one are slow."""


def small(env_id: str) -> dict[str, Any]:
    """Returns arguments that make a small instance of a registered environment."""
    return dict(REGISTRY[env_id].small)


def own_small(env_id: str) -> dict[str, Any]:
    """Returns arguments that make an environment small which is too large for tests as it is registered."""
    return dict(REGISTRY[env_id].problem.presets[env_id].small or {})


def few(env_id: str) -> dict[str, Any]:
    """Returns an id's own settings, in a small instance: ten agents and the sizes of :func:`small` at most.

    Checks take as long as instances are large, and sizes that an id names are those of a paper's experiment.
    """
    most = {"num_agents": 10, **{name: size for name, size in small(env_id).items() if isinstance(size, int)}}
    preset = {**REGISTRY[env_id].kwargs, **own_small(env_id)}
    sizes = {name: min(preset[name], size) for name, size in most.items() if name in preset}
    return {**small(env_id), **preset, **sizes}


def two_agents(env_id: str, **changes: Any) -> FederatedEnv:
    """Makes a small instance with two agents and seven rounds."""
    return make_federation(env_id, **{**small(env_id), "num_agents": 2, "max_cycles": 7, **changes})


@cache
def carries_messages(env_id: str) -> bool:
    """Says whether an id's own stack has a transport: no noise, data layer or second transport fits around it."""
    return find_layer(make_federation(env_id, **small(env_id)), "transport") is not None


@cache
def has_bounded_releases(env_id: str) -> bool:
    """Says whether noise can be added to an id's releases as they are, since one observation changes them boundedly."""
    env = make_federation(env_id, **own_small(env_id))
    env.reset_batch([0])
    return all(np.isfinite(array).all() for array in env.sensitivity().scale.values())


def _form(space: spaces.Space[Any]) -> Any:
    """What a view can tell a space by, whatever its bounds and sizes: names, classes and numbers of axes."""
    if isinstance(space, spaces.Dict):
        return [(name, _form(part)) for name, part in space.items()]
    return type(space), len(space.shape or ())


@cache
def _first_of_their_kind() -> list[str]:
    """Ids of which no earlier one has the same wrappers, forms of spaces and action formats."""
    found: dict[str, str] = {}
    for env_id in REGISTRY:
        env = make_federation(env_id, **few(env_id))
        inside = [type(level).__name__ for level in layers(env)]
        forms = _form(env.single_action_space), _form(env.single_observation_space)
        found.setdefault(repr((inside, forms, list(env.action_formats))), env_id)
    return list(found.values())


# Views of ids like an earlier one that ordinary runs try as well: the plainest one and the one with the most parts.
_OF_ALL_IDS = ("learner", "stack-asking-features-joint")

LISTENERS = {
    "arms": "fedbandit_envs.baselines.arms:UCB1",
    "exposure": "fedbandit_envs.baselines.exposure:FairX",
    "gaussian": "fedbandit_envs.baselines.gaussian:GaussianUCB",
    "linear": "fedbandit_envs.baselines.linear:FedUCB",
    "procurement": "fedbandit_envs.baselines.procurement:PFCB",
}
"""Policies that learn from the messages that they receive, by the folder of their problem."""


@cache
def views(stack: Callable[[Any], list[Any]]) -> list[Any]:
    """Returns ids with arguments of ``gymnasium.make``; of an id in two versions only the newer one.

    What a view shows depends on an id's kind, so that of ids of one kind the first has all views in ordinary runs, and
    the others have them in slow ones.
    """
    parameters = []
    firsts = _first_of_their_kind()
    for env_id, entry in REGISTRY.items():
        if env_id.replace("-v0", "-v1") in REGISTRY.keys() - {env_id}:
            continue
        formats = list(make_federation(env_id, **small(env_id)).action_formats)
        listener = LISTENERS[entry.federation.split(".")[1]]
        for name, view in {
            "learner": {},
            "joint": {"joint": True},
            **{name: {"action_format": name} for name in formats[1:]},
            f"{formats[-1]}-joint": {"action_format": formats[-1], "joint": True},
            "stack": {"stack": stack("every_round"), "peers": listener},
            "stack-joint": {"stack": stack({"name": "fixed_gap", "gap": 2}), "joint": True},
            "stack-asking": {"stack": stack("on_request"), "action_format": formats[-1]},
            "features": {"features": True, "action_format": formats[-1]},
            "stack-asking-features-joint": {
                "stack": stack("on_request"),
                "action_format": f"{formats[-1]}_and_send",
                "features": True,
                "joint": True,
            },
            "stack-asking-listeners": {"stack": stack("on_request"), "peers": listener},
        }.items():
            if "stack" in view and (carries_messages(env_id) or not has_bounded_releases(env_id)):
                continue
            slow = () if env_id in firsts or name in _OF_ALL_IDS else (pytest.mark.slow,)
            parameters.append(pytest.param(env_id, view, id=f"{env_id}-{name}", marks=slow))
    return parameters
