"""All experiments by name: those of this package's papers, and those of plug-ins."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from fedbandit_envs import papers
from fedbandit_envs.papers.experiment import Experiment
from fedbandit_envs.registry.registration import Registry


@cache
def experiments() -> Registry[Experiment]:
    """Returns the ``EXPERIMENTS`` of all modules in this folder, and of plug-ins of the group ``papers``, by name."""
    modules = [import_module(f"{papers.__name__}.{module.name}") for module in iter_modules(papers.__path__)]
    own = {name: one for paper in modules for name, one in getattr(paper, "EXPERIMENTS", {}).items()}
    return Registry(own, papers=lambda plugin: dict(plugin.content.EXPERIMENTS))
