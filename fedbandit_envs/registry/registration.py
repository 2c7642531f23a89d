"""The registries: environments from problems' folders, registered with Gymnasium and PettingZoo, and plug-ins.

Plug-ins are what other installed packages add to the registries, by entry points in the groups ``fedbandit_envs.*``.
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

import gymnasium

import fedbandit_envs
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import build
from fedbandit_envs.registry.problems import Registered, RegisteredProblem
from fedbandit_envs.views.parallel import in_turn, parallel

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
        message = f"plug-in {self.name!r} of {self.package} is left out: {reason}"
        warnings.warn(message, PluginWarning, stacklevel=3)


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


def subclass_of(base: type[Entry]) -> Callable[[Plugin], Mapping[str, type[Entry]]]:
    """Returns the reader of plug-ins that are a subclass of ``base`` each, by the names of their entry points."""

    def read(plugin: Plugin) -> Mapping[str, type[Entry]]:
        if not (isinstance(plugin.content, type) and issubclass(plugin.content, base)):
            raise TypeError(f"{plugin.content!r} is no subclass of {base.__name__}")
        return {plugin.name: plugin.content}

    return read


def registered(package: ModuleType) -> Iterator[ModuleType]:
    """Yields the modules named ``registered`` in the folders of a package, sorted by the folders' names."""
    for folder in sorted(iter_modules(package.__path__), key=lambda module: module.name):
        # The module is searched on disk, and only folders that have it are imported. Importing every folder could
        # import packages of higher layers, which modules of this layer may not do.
        inside = iter_modules([f"{path}/{folder.name}" for path in package.__path__])
        if folder.ispkg and any(module.name == "registered" for module in inside):
            yield import_module(f"{package.__name__}.{folder.name}.registered")


def _ids(problem: RegisteredProblem) -> dict[str, Registered]:
    return {
        env_id: Registered(problem, env_id, dict(preset.kwargs), preset.stack)
        for env_id, preset in problem.presets.items()
    }


def _ids_of_plugin(plugin: Plugin) -> dict[str, Registered]:
    ids = _ids(plugin.content.PROBLEM)
    if taken := sorted(ids.keys() & gymnasium.registry.keys()):
        raise ValueError(f"Gymnasium has an environment {taken[0]!r} already")
    for entry in ids.values():
        register(entry)
    return ids


PROBLEMS: dict[str, RegisteredProblem] = {
    module.__name__.split(".")[-2]: module.PROBLEM for module in registered(fedbandit_envs)
}
"""Every problem of this project by the name of its folder."""

REGISTRY: Registry[Registered] = Registry(
    {env_id: entry for problem in PROBLEMS.values() for env_id, entry in _ids(problem).items()},
    problems=_ids_of_plugin,
)
"""Every environment by its Gymnasium id; a plug-in of the group ``problems`` names a module that has ``PROBLEM``."""


def problem_of(plugin: Plugin) -> RegisteredProblem:
    """Returns the problem that a plug-in of the group ``problems`` adds.

    Raises:
        ValueError: :data:`REGISTRY` lacks one of the problem's environment ids, or has another problem under it.
    """
    problem: RegisteredProblem = plugin.content.PROBLEM
    if any(env_id not in REGISTRY or REGISTRY[env_id].problem is not problem for env_id in problem.presets):
        raise ValueError("its environment ids are left out")
    return problem


def find_registered(name: str) -> Registered:
    """Returns the registered environment of a name.

    Args:
        name: An id in :data:`REGISTRY`; an id of a plug-in behind its package, ``"mybandits:MyEnv-v0"``; or the entry
            point ``"module:Class"`` of an environment, which then has no preset.

    Raises:
        ValueError: There is no such id.
        ImportError: There is no such module.
        AttributeError: The module has no such attribute.
        TypeError: The name is no text, or the entry point names no environment.
    """
    if not isinstance(name, str):
        raise TypeError(f"env_id is {name!r}; an id such as 'FedArms-v0', or the entry point, is required")
    module, colon, attribute = name.rpartition(":")
    if colon and attribute.isidentifier():
        federation = resolve(name)
        if not (isinstance(federation, type) and issubclass(federation, FederatedEnv)):
            raise TypeError(f"env_id is {name!r}; an id or the entry point of a FederatedEnv is required")
        return Registered(RegisteredProblem(name), name, {}, ())
    if colon:
        import_module(module)
    require_choice("env_id", attribute, REGISTRY)
    return REGISTRY[attribute]


def make_federation(env_id: str, **changes: object) -> FederatedEnv:
    """Makes the federation of a registered id, with the wrappers that belong to it.

    Args:
        env_id: See :func:`find_registered`.
        **changes: Arguments of the environment in place of the preset's.

    Raises:
        TypeError: An argument is unknown or has the wrong type.
        ValueError: An argument is out of its range.
    """
    entry = find_registered(env_id)
    return build(entry.federation, entry.stack, **{**entry.kwargs, **changes})


def make_parallel(
    env_id: str, action_format: str | None = None, features: bool = False, **changes: object
) -> Any:
    """Makes a registered id for PettingZoo: the federation, or with an action format or features a view of it.

    Args:
        env_id: Id in :data:`REGISTRY`.
        action_format: See :class:`~fedbandit_envs.views.parallel.ParallelView`.
        features: See there.
        **changes: Arguments of the environment in place of the preset's.

    Raises:
        TypeError: An argument is unknown or has the wrong type.
        ValueError: An argument is out of its range.
    """
    return parallel(make_federation(env_id, **changes), action_format, features)


def make_in_turn(env_id: str, **changes: Any) -> Any:
    """Makes a registered id for PettingZoo as an ``AECEnv``, whose agents act one after another.

    Args:
        env_id: Id in :data:`REGISTRY`.
        **changes: Further arguments of :func:`make_parallel`, which makes the environment.
    """
    return in_turn(make_parallel(env_id, **changes))


def register(entry: Registered) -> None:
    """Registers an id with Gymnasium, and with PettingZoo where it has a registry (1.27 and later)."""
    gymnasium.register(
        entry.env_id,
        entry_point="fedbandit_envs.views.gymnasium_env:FederationEnv",
        vector_entry_point="fedbandit_envs.views.gymnasium_env:FederationVectorEnv",
        kwargs={
            "federation": entry.federation,
            **({"peers": entry.problem.peers} if entry.problem.peers else {}),
            **({"preset_stack": entry.stack} if entry.stack else {}),
            **entry.kwargs,
        },
    )
    try:
        from pettingzoo import register as register_with_pettingzoo
    except ImportError:
        return
    for kind, maker in (("parallel", "make_parallel"), ("aec", "make_in_turn")):
        register_with_pettingzoo(
            kind,
            entry.pettingzoo,
            entry_point=f"fedbandit_envs.registry.registration:{maker}",
            kwargs={"env_id": entry.env_id},
        )


def register_plugins() -> None:
    """Registers the ids of all installed plug-ins with Gymnasium and PettingZoo.

    The ``__init__.py`` of a plug-in's package calls it, so that ``gymnasium.make("mybandits:MyEnv-v0")`` works.
    """
    len(REGISTRY)
