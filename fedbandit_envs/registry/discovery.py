"""Discovery of the modules ``registered`` in the folders of a package, so that there is no list of folders."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def registered(package: ModuleType) -> Iterator[ModuleType]:
    """Yields the module ``registered`` of every folder of a package that has one, by the folders' names."""
    for folder in sorted(iter_modules(package.__path__), key=lambda module: module.name):
        # Searched on disk, since importing a folder that declares nothing could import packages of a higher layer.
        inside = iter_modules([f"{path}/{folder.name}" for path in package.__path__])
        if folder.ispkg and any(module.name == "registered" for module in inside):
            yield import_module(f"{package.__name__}.{folder.name}.registered")
