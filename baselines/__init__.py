"""Bandit policies, one folder for each problem, and the registry of baselines: policies with their wrappers."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbandit_envs.baselines.baseline import Baseline
    from fedbandit_envs.baselines.registry import BASELINES, find_baseline

__all__ = ["BASELINES", "Baseline", "find_baseline", "peers_of"]

# These names are imported on first use only: the registry imports every folder of policies, and each folder imports
# this package, so that an import at this place would be circular.
_MODULES = {"BASELINES": "registry", "find_baseline": "registry", "Baseline": "baseline"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def peers_of(problem: str) -> type | None:
    """Returns the policy that plays a learner's peers by default: ``PEERS`` of the problem's folder of policies.

    Args:
        problem: Name of the problem's folder, such as ``"arms"``. None is returned for a problem without policies here.
    """
    name = f"{__name__}.{problem}"
    return getattr(import_module(name), "PEERS", None) if find_spec(name) else None
