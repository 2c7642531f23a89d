"""Things made from specifications that can be written as JSON: a name, or a mapping of the name and arguments."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Thing = TypeVar("Thing")


def make(
    kind: str,
    spec: Thing | str | Mapping[str, Any],
    known: Mapping[str, Callable[..., Thing]],
    protocol: type[Any],
    also: str = "",
) -> Thing:
    """Makes a thing from its specification; a thing passes through.

    Args:
        kind: What it is called in errors.
        spec: The thing itself, a name of ``known``, or a mapping of ``name`` and the thing's arguments.
        known: What makes things, by name.
        protocol: What they must be able to do.
        also: What else errors should say is allowed in the place of a name.

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
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{kind} name is {name!r}; one of {sorted(known)}{also} is required")
    try:
        return known[name](**arguments)
    except TypeError as error:
        raise TypeError(f"{kind} {name!r} with arguments {arguments}: {error}") from None
