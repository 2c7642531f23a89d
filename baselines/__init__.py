"""Bandit policies, one folder for each problem, and the registry of baselines: policies with their wrappers."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbandit_envs.baselines.baseline import Baseline, find_baseline
    from fedbandit_envs.registry.registration import Registry

    BASELINES: Registry[Baseline]

__all__ = ["BASELINES", "Baseline", "find_baseline", "peers_of"]


def __getattr__(name: str) -> Any:
    # These names are imported on first use only: baselines import every folder of policies, and each folder imports
    # this package, so that an import at this place would be circular.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.baseline")
    return module.all_baselines() if name == "BASELINES" else getattr(module, name)


def peers_of(problem: str) -> type | None:
    """Returns the policy that plays a learner's peers by default: ``PEERS`` of the problem's folder of policies.

    Args:
        problem: Name of the problem's folder, such as ``"arms"``. None is returned for a problem without policies here.
    """
    name = f"{__name__}.{problem}"
    return getattr(import_module(name), "PEERS", None) if find_spec(name) else None
