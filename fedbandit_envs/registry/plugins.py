"""Plug-ins: what other installed packages add to the registries, by entry points in the groups ``fedbandit_envs.*``.

A package names its additions in its ``pyproject.toml``::

    [project.entry-points."fedbandit_envs.problems"]
    mybandits = "mybandits.registered"

Plug-ins are imported when somebody first looks up a name that is not among this project's own entries, or lists all
names. A plug-in that cannot be imported, or that adds a name which exists already, is left out with a
:class:`PluginWarning`; all others work.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

Entry = TypeVar("Entry")


class PluginWarning(UserWarning):
    """Warning that a plug-in is not used; the message names the plug-in, its package and the reason."""


class Plugin(NamedTuple):
    """One entry point of an installed package, imported.

    Attributes:
        name: Name of the entry point.
        package: Name and version of the distribution that declares it.
        content: The object that the entry point names.
    """

    name: str
    package: str
    content: Any

    def leave_out(self, reason: object) -> None:
        """Warns that the plug-in is left out, and why."""
        warnings.warn(
            f"plug-in {self.name!r} of {self.package} is left out: {reason}", PluginWarning, stacklevel=3
        )


@cache
def plugins(group: str) -> tuple[Plugin, ...]:
    """Imports the installed plug-ins of a group, once in each process, and returns them.

    Args:
        group: ``"problems"``, ``"baselines"``, ``"wrappers"``, ``"mechanisms"``, ``"suites"`` or ``"papers"``.

    Returns:
        The plug-ins that can be imported, sorted by the names of package and entry point.

    Warns:
        PluginWarning: A plug-in cannot be imported.
    """
    found = []
    for point in entry_points(group=f"fedbandit_envs.{group}"):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown"
        plugin = Plugin(point.name, package, None)
        try:
            found.append(plugin._replace(content=point.load()))
        # A plug-in may raise any exception; it must not affect other plug-ins or this package.
        except (Exception, SystemExit) as error:
            plugin.leave_out(f"importing {point.value!r} raises {type(error).__name__}: {error}")
    return tuple(sorted(found, key=lambda plugin: (plugin.package, plugin.name)))


class Registry(MutableMapping[str, Entry]):
    """Entries by name: first this project's own ones, then those of plug-ins.

    Plug-ins are imported only when somebody looks up a name that is not among the project's own, or lists all names.

    Attributes:
        own: The entries of this project by name.
    """

    def __init__(self, own: Mapping[str, Entry], **readers: Callable[[Plugin], Mapping[str, Entry]]) -> None:
        """Makes a registry of the project's own entries, to which plug-ins are added later.

        Args:
            own: The project's own entries by name.
            **readers: For each group of plug-ins that add entries, a function that returns a plug-in's entries by name.
        """
        self.own = dict(own)
        self._readers = readers
        self._entries = self.own
        self._packages: dict[str, str] = {}

    def package(self, name: str) -> str | None:
        """Returns name and version of the package that brings an entry; None if it is this project or unknown."""
        # A worker process may ask before it has looked up the name, and so before plug-ins have been imported.
        if name not in self.own:
            self._all()
        return self._packages.get(name)

    def _all(self) -> dict[str, Entry]:
        if self._entries is self.own:
            # Set before plug-ins are imported, so that a plug-in that looks up names during its import does not start
            # the import of all plug-ins again.
            self._entries = dict(self.own)
            for group, read in self._readers.items():
                for plugin in plugins(group):
                    self._add(plugin, read)
        return self._entries

    def _add(self, plugin: Plugin, read: Callable[[Plugin], Mapping[str, Entry]]) -> None:
        try:
            added = read(plugin)
        except Exception as error:
            plugin.leave_out(f"{type(error).__name__}: {error}")
            return
        if taken := sorted(added.keys() & self._entries.keys()):
            plugin.leave_out(f"the name {taken[0]!r} exists already")
            return
        self._entries.update(added)
        self._packages.update(dict.fromkeys(added, plugin.package))

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name] if name in self._entries else self._all()[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._all()[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def registered(package: ModuleType) -> Iterator[ModuleType]:
    """Yields the modules named ``registered`` in the folders of a package, sorted by the folders' names."""
    for folder in sorted(iter_modules(package.__path__), key=lambda module: module.name):
        # The module is searched on disk, and only folders that have it are imported. Importing every folder could
        # import packages of higher layers, which modules of this layer may not do.
        inside = iter_modules([f"{path}/{folder.name}" for path in package.__path__])
        if folder.ispkg and any(module.name == "registered" for module in inside):
            yield import_module(f"{package.__name__}.{folder.name}.registered")
