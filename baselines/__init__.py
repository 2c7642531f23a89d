"""Policies, a folder a problem, and the registry of them with the wrappers that they are played behind."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbandit_envs.baselines.baseline import Baseline
    from fedbandit_envs.baselines.registry import BASELINES, find_baseline

__all__ = ["BASELINES", "Baseline", "find_baseline"]

# Imported when they are asked for: the registry imports every folder, and each of them this package.
_MODULES = {"BASELINES": "registry", "find_baseline": "registry", "Baseline": "baseline"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
