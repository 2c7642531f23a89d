"""Entry points: names of things on higher floors, resolved when used."""

from importlib import import_module
from typing import Any


def resolve(entry_point: str) -> Any:
    """Imports what ``"module:attribute"`` names.

    Raises:
        ValueError: The string is not of that form.
        ModuleNotFoundError: There is no such module.
        AttributeError: The module has no such attribute.
    """
    module, colon, attribute = entry_point.partition(":")
    if not (module and colon and attribute):
        raise ValueError(f"entry point is {entry_point!r}; 'module:attribute' is required")
    return getattr(import_module(module), attribute)
