"""Objects made from specifications in JSON: a name, or a mapping of a name and arguments."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fedbandit_envs.basics.entry_points import resolve

Thing = TypeVar("Thing")


def make(
    kind: str,
    spec: Thing | str | Mapping[str, Any],
    known: Mapping[str, Callable[..., Thing]],
    protocol: type[Any],
    also: str = "",
) -> Thing:
    """Returns the object that a specification describes; an object is returned as it is.

    Args:
        kind: Name of the kind of object, for errors.
        spec: The object itself, a name in ``known`` or an entry point ``"module:Class"``, or a mapping of ``name`` and
            the object's arguments.
        known: Constructors by name.
        protocol: The protocol that objects must implement.
        also: Other allowed values of the name, for errors.

    Raises:
        TypeError: The specification is none of these, or has arguments the thing does not know.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping):
        if isinstance(spec, type) or not isinstance(spec, protocol):
            raise TypeError(
                f"{kind} is {spec!r}; a name or a mapping with a name, or an instance of {protocol.__name__}, "
                "is required"
            )
        passed: Thing = spec
        return passed
    arguments = dict(spec)
    name = arguments.pop("name", None)
    if isinstance(name, str) and name in known:
        constructor = known[name]
    elif isinstance(name, str) and ":" in name:
        constructor = resolve(name)
    else:
        raise ValueError(f"{kind} name is {name!r}; one of {sorted(known)}, 'module:Class'{also} is required")
    try:
        return constructor(**arguments)
    except TypeError as error:
        raise TypeError(f"{kind} {name!r} with arguments {arguments}: {error}") from None
