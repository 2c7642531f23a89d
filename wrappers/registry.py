"""The registry of wrappers by name."""

from collections.abc import Mapping

from fedbandit_envs import wrappers
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.registry.plugins import Plugin, Registry


def _of_plugin(plugin: Plugin) -> Mapping[str, type[FederatedWrapper]]:
    if not (isinstance(plugin.content, type) and issubclass(plugin.content, FederatedWrapper)):
        raise TypeError(f"{plugin.content!r} is no subclass of FederatedWrapper")
    return {plugin.name: plugin.content}


WRAPPERS: Registry[type[FederatedWrapper]] = Registry(
    {name: wrapper for name in wrappers.__all__ if (wrapper := getattr(wrappers, name)).examples},
    wrappers=_of_plugin,
)
"""The wrappers' classes by name, for all wrappers whose arguments besides the environment can be written as JSON.

This project's wrappers have the names of their classes, wrappers of plug-ins the names of their entry points.
"""
