"""Bandit policies, one folder for each problem, and the registry of baselines: policies with their wrappers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbandit_envs.baselines.baseline import Baseline
    from fedbandit_envs.baselines.registry import BASELINES, find_baseline

__all__ = ["BASELINES", "Baseline", "find_baseline"]

# These names are imported on first use only: the registry imports every folder of policies, and each folder imports
# this package, so that an import at this place would be circular.
_MODULES = {"BASELINES": "registry", "find_baseline": "registry", "Baseline": "baseline"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
