"""Entry points: names of objects in modules that are imported only when they are used."""

from importlib import import_module
from typing import Any


def resolve(entry_point: str) -> Any:
    """Imports a module and returns one of its attributes, given the string ``"module:attribute"``.

    Raises:
        ValueError: The string is not of that form.
        ModuleNotFoundError: There is no such module.
        AttributeError: The module has no such attribute.
    """
    module, colon, attribute = entry_point.partition(":")
    if not (module and colon and attribute):
        raise ValueError(f"entry point is {entry_point!r}; 'module:attribute' is required")
    return getattr(import_module(module), attribute)
