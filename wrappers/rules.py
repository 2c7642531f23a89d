"""Rules of wrappers: functions that users choose by a name in JSON, or by a mapping of the name and arguments.

The wrapper that calls a rule passes the positional arguments; users set the keyword arguments. These are checked once,
when the rule is chosen, and not at every call.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar

from fedbandit_envs.basics.config import make
from fedbandit_envs.basics.entry_points import resolve

Rule = TypeVar("Rule", bound=Callable[..., Any])

_CHECKS: dict[Callable[..., Any], Callable[..., Any]] = {}


def checked(check: Callable[..., Any]) -> Callable[[Rule], Rule]:
    """Returns a decorator that registers ``check`` as the check of a rule's keyword arguments.

    Args:
        check: A function that is called with the keyword arguments and raises an error if they are invalid.
    """

    def register(rule: Rule) -> Rule:
        _CHECKS[rule] = check
        return rule

    return register


def make_rule(kind: str, spec: Any, known: Mapping[str, Callable[..., Any]], also: str = "") -> Any:
    """Returns the function that a specification describes, with its keyword arguments filled in.

    Args:
        kind: Name of the kind of rule, for error messages.
        spec: A function, which is returned unchanged; or a name in ``known`` or an entry point ``"module:function"``;
            or a mapping with such a ``name`` and the function's keyword arguments.
        known: Functions by name; those with keyword arguments must have the decorator :func:`checked`. The names of an
            entry point's arguments are checked against its signature if it lacks the decorator.
        also: Text on other allowed values of the name, for error messages.

    Raises:
        TypeError: The specification has none of these forms, or has arguments that the function does not accept.
        ValueError: The name is unknown, or an argument is out of its range.
    """

    def chosen(rule: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
        _CHECKS.get(rule, signature(rule).bind_partial if foreign else _no_arguments)(**arguments)
        return partial(rule, **arguments)

    if callable(spec) and not isinstance(spec, type):
        return spec
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    foreign = name if isinstance(name, str) and ":" in name else None
    if foreign:
        known = {foreign: resolve(foreign)}
    return make(kind, spec, {name: partial(chosen, rule) for name, rule in known.items()}, FunctionType, also)


def _no_arguments() -> None:
    """Checks the arguments of rules without keyword arguments: Python raises a ``TypeError`` if there are any."""
