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
    """Returns the object that a specification describes; if the specification is the object itself, it is returned.

    Args:
        kind: Name of the kind of object, for error messages.
        spec: The object itself; or a name in ``known`` or an entry point ``"module:Class"``; or a mapping with such a
            ``name`` and the arguments of the object's constructor.
        known: Constructors of objects by name.
        protocol: The protocol or class that the object must be an instance of.
        also: Text on other allowed values of the name, for error messages.

    Raises:
        TypeError: The specification has none of these forms, or has arguments that the constructor does not accept.
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
