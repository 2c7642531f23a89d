"""What can be chosen in the lab, asked of the registries: what is registered later appears by itself."""

from collections.abc import Callable, Mapping
from inspect import Parameter
from json import dumps
from typing import Any, NamedTuple, get_args

import numpy as np

from fedbandit_envs.arms.means import DataName
from fedbandit_envs.baselines.arms.owners import OWNERS
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.leaderboard import run
from fedbandit_envs.registration import REGISTRY
from fedbandit_envs.wrapper import FederatedWrapper, Layer
from fedbandit_envs.wrappers.byzantine import ATTACKS
from fedbandit_envs.wrappers.participation import LAWS
from fedbandit_envs.wrappers.registry import WRAPPERS
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES
from fedbandit_envs.wrappers.transport.topology import TOPOLOGIES


class Argument(NamedTuple):
    """Something that can be told.

    Attributes:
        value: What it is if nothing is said; what to begin with where something must be said, empty if nobody knows.
        required: Whether something must be said.
    """

    value: Any
    required: bool = False

    @property
    def text(self) -> str:
        """The value as it is written in a field; :func:`said` reads it."""
        return self.value if isinstance(self.value, str) else dumps(self.value, default=str)


AS_REGISTERED = "as the policy has it"
NONE = "none"
EVERYBODY = "all"

_BEGIN_WITH: Mapping[str, Any] = {
    "gap": 100, "limit": 100, "count": 8, "probability": 0.5, "degree": 4, "rounds": [0, 1], "epsilon": 1.0,
    "delta": 0.1,
}  # fmt: skip
"""What arguments begin with that have no default, by their names; others begin empty, and what needs them says so."""

# Said by other menus, or by the horizon.
_ELSEWHERE = {
    "env", "max_cycles", "render_mode", "horizon", "num_agents", "generator", "schedule", "topology", "delay", "loss",
    "duplication", "noise_seed",
}  # fmt: skip


def problems() -> list[str]:
    """Returns the ids of all environments."""
    return list(REGISTRY)


def policies(env_id: str) -> list[str]:
    """Returns the names of all baselines that play a problem.

    Args:
        env_id: Id in ``REGISTRY``.
    """
    federation = resolve(REGISTRY[env_id].federation)
    return [name for name, one in BASELINES.items() if issubclass(federation, one.federation)]


def to_begin_with(env_id: str) -> str:
    """Returns the first baseline of a problem that sends noisy data, so that there is something to see; else the first.

    Args:
        env_id: Id in ``REGISTRY``.
    """
    names = policies(env_id)
    noisy = (name for name in names if of_wrapper(name, "noise", AS_REGISTERED))
    return next(noisy, names[0])


def of_layer(layer: Layer) -> dict[str, type[FederatedWrapper]]:
    """Returns the wrappers of a layer by name."""
    return {name: wrapper for name, wrapper in WRAPPERS.items() if wrapper.layer == layer}


def transports() -> list[str]:
    """Returns what can carry messages; the first leaves it to the policy."""
    return [AS_REGISTERED, NONE, *of_layer("transport")]


def privatizers() -> list[str]:
    """Returns what can make noise; the first leaves it to the policy."""
    return [AS_REGISTERED, NONE, *of_layer("noise")]


def schedules() -> list[str]:
    """Returns the schedules' names; the first leaves it to the policy or the carrier."""
    return [AS_REGISTERED, *SCHEDULES]


def topologies() -> list[str]:
    """Returns the graphs' names; the first leaves it to the policy or the carrier."""
    return [AS_REGISTERED, *TOPOLOGIES]


def attacks() -> list[str]:
    """Returns what liars can do; the first is nothing."""
    return [NONE, *ATTACKS]


def laws() -> list[str]:
    """Returns the laws of participation; by the first all agents act."""
    return [EVERYBODY, *LAWS]


def algorithms() -> list[str]:
    """Returns the algorithms of data owners, with those that are there to be refused with a reason."""
    return list(OWNERS)


def data() -> list[str]:
    """Returns the names of the ratings that come with the package."""
    return list(get_args(DataName))


def of_problem(env_id: str) -> dict[str, Argument]:
    """Returns what an environment can be told: defaults, those of the problem's class and of the preset first."""
    entry = REGISTRY[env_id]
    federation = resolve(entry.federation)
    usual = {"num_agents": Argument(run.arguments(federation)["num_agents"]), **arguments(federation)}
    return {**usual, **_by_default(getattr(federation, "defaults", {})), **_by_default(entry.kwargs)}


def keeps_arms(env_id: str) -> bool:
    """Says whether arms that have merit can be the same in every round, where a problem draws them anew."""
    return {"contexts", "num_arms", "dim", "merit"} <= of_problem(env_id).keys()


def same_arms(env_id: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """Returns contexts that stay, uniform on the cube: so that shares of pulls are those of arms and not of places.

    Args:
        env_id: Id of a problem that :func:`keeps_arms`.
        told: What else the problem is told.
    """
    usual = of_problem(env_id)
    shape = [told.get(name, usual[name].value) for name in ("num_arms", "dim")]
    if not all(isinstance(size, int) and size > 0 for size in shape):
        # What is wrong with them the problem says.
        return {}
    return {"contexts": (np.random.default_rng(0).random(shape) / np.sqrt(shape[1])).round(3).tolist()}


def of_policy(policy: str) -> dict[str, Argument]:
    """Returns what a baseline's policy can be told, by name, with what it is told as registered."""
    return {**arguments(BASELINES[policy].policy), **_by_default(BASELINES[policy].policy_kwargs)}


def of_wrapper(policy: str, layer: Layer, choice: str) -> dict[str, Argument]:
    """Returns what the wrapper of a layer can be told, by name; nothing where there is none.

    Args:
        policy: A baseline.
        layer: ``noise`` or ``transport``.
        choice: One of :func:`privatizers` or :func:`transports`.
    """
    if choice == AS_REGISTERED:
        for wrapping in BASELINES[policy].wrappers.values():
            if getattr(wrapping.make, "layer", None) == layer:
                told = {name: value for name, value in wrapping.kwargs.items() if name not in _ELSEWHERE}
                return {**arguments(wrapping.make), **_by_default(told)}
        return {}
    return {} if choice == NONE else arguments(of_layer(layer)[choice])


def of_named(known: Mapping[str, Callable[..., Any]], name: str) -> dict[str, Argument]:
    """Returns what a thing of a registry can be told, by name; nothing where the name is not among them."""
    return arguments(known[name]) if name in known else {}


def arguments(make: Callable[..., Any]) -> dict[str, Argument]:
    """Returns what a class or function can be told, by name, but for what other menus say."""
    return {
        name: Argument(_BEGIN_WITH.get(name, ""), True) if default is Parameter.empty else Argument(default)
        for name, default in run.arguments(make).items()
        if name not in _ELSEWHERE
    }


def _by_default(values: Mapping[str, Any]) -> dict[str, Argument]:
    return {name: Argument(value) for name, value in values.items()}


def said(fields: Mapping[str, str]) -> dict[str, Any]:
    """Returns what fields say, by name: JSON, else Python, else the text itself; nothing of those left empty."""
    return {name: run.read_value(text) for name, text in fields.items() if text.strip()}
