"""Rules of wrappers: functions that are chosen by a name in JSON, or by a mapping of the name and arguments.

A rule's first arguments come from the wrapper that calls it; what users may set are its keyword arguments.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fedbandit_envs.basics.config import make


def make_rule(
    kind: str, spec: Any, known: Mapping[str, Callable[..., Any]], *tried: Any, also: str = ""
) -> Any:
    """Returns the function that a specification describes, with its keyword arguments; a function is returned as it is.

    Args:
        kind: Name of the kind of rule, for errors.
        spec: A function, a name in ``known``, or a mapping of ``name`` and the function's keyword arguments.
        known: Functions by name.
        *tried: First arguments with which a named function is called once, so that bad keyword arguments are errors
            now.
        also: Other allowed values of the name, for errors.

    Raises:
        TypeError: The specification is none of these, or has arguments that the function does not know.
        ValueError: The name is unknown, or an argument is out of its range.
    """

    def chosen(rule: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
        rule(*tried, **arguments)
        return partial(rule, **arguments)

    return make(kind, spec, {name: partial(chosen, rule) for name, rule in known.items()}, Callable, also)
