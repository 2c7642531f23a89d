"""Search for modules named ``registered`` in the folders of a package, so that no list of folders has to be kept."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def registered(package: ModuleType) -> Iterator[ModuleType]:
    """Yields the modules named ``registered`` in the folders of a package, sorted by the folders' names."""
    for folder in sorted(iter_modules(package.__path__), key=lambda module: module.name):
        # The module is searched on disk, and only folders that have it are imported. Importing every folder could
        # import packages of higher layers, which modules of this layer may not do.
        inside = iter_modules([f"{path}/{folder.name}" for path in package.__path__])
        if folder.ispkg and any(module.name == "registered" for module in inside):
            yield import_module(f"{package.__name__}.{folder.name}.registered")
