"""Reading ``--set key=value`` words of a command line, and finding out which keys a class or function accepts."""

import inspect
import json
from ast import literal_eval
from typing import Any

_REST = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def read_assignment(word: str) -> tuple[str, str, Any]:
    """Reads a word of ``--set``.

    Args:
        word: ``name=value`` or ``part.name=value``.

    Returns:
        The part (what the argument belongs to, such as ``policy``; empty in ``name=value``), the argument's name and
        its value; see :func:`read_value`.

    Raises:
        ValueError: The word is neither; the message names it.
    """
    key, equals, text = word.partition("=")
    part, dot, name = key.rpartition(".")
    if not (equals and name.isidentifier() and (part.isidentifier() or not dot)):
        raise ValueError(f"--set is {word!r}; key=value or part.key=value is required")
    return part, name, read_value(text)


def read_value(text: str) -> Any:
    """Returns the value of a ``key=value``: read as JSON, else as Python (``False``, ``.5``), else the text itself."""
    for read in (json.loads, literal_eval):
        try:
            value = read(text)
            # Settings are recorded as JSON, which has no sets or bytes.
            json.dumps(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return value
    return text


def arguments(factory: Any) -> dict[str, Any]:
    """Returns the arguments that a class or function accepts, with their defaults.

    Arguments that a class passes on by ``**kwargs`` are those of its base class.

    Args:
        factory: A class or a function.

    Returns:
        Defaults by name; ``inspect.Parameter.empty`` where an argument has none.
    """
    found: dict[str, Any] = {}
    classes = factory.__mro__ if isinstance(factory, type) else ()
    for function in [vars(one)["__init__"] for one in classes if "__init__" in vars(one)] or [factory]:
        parameters = inspect.signature(function).parameters.values()
        found = {**{p.name: p.default for p in parameters if p.kind not in _REST}, **found}
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return {name: default for name, default in found.items() if name != "self"}
