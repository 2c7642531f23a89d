"""Rules of wrappers: functions that are chosen by a name in JSON, or by a mapping of the name and arguments.

A rule's first arguments come from the wrapper that calls it; what users may set are its keyword arguments. They are
checked once, when the rule is chosen, and not at every call.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any, TypeVar

from fedbandit_envs.basics.config import make
from fedbandit_envs.basics.entry_points import resolve

Rule = TypeVar("Rule", bound=Callable[..., Any])

_CHECKS: dict[Callable[..., Any], Callable[..., Any]] = {}


def checked(check: Callable[..., Any]) -> Callable[[Rule], Rule]:
    """Returns a decorator for a rule whose keyword arguments ``check`` accepts or refuses with an error."""

    def register(rule: Rule) -> Rule:
        _CHECKS[rule] = check
        return rule

    return register


def make_rule(kind: str, spec: Any, known: Mapping[str, Callable[..., Any]], also: str = "") -> Any:
    """Returns the function that a specification describes, with its keyword arguments; a function is returned as it is.

    Args:
        kind: Name of the kind of rule, for errors.
        spec: A function, a name in ``known`` or an entry point ``"module:function"``, or a mapping of ``name`` and the
            function's keyword arguments.
        known: Functions by name; those with keyword arguments are :func:`checked`.
        also: Other allowed values of the name, for errors.

    Raises:
        TypeError: The specification is none of these, or has arguments that the function does not know.
        ValueError: The name is unknown, or an argument is out of its range.
    """

    def chosen(rule: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
        _CHECKS.get(rule, _no_arguments)(**arguments)
        return partial(rule, **arguments)

    if callable(spec) and not isinstance(spec, type):
        return spec
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    if isinstance(name, str) and ":" in name:
        known = {name: resolve(name)}
    return make(kind, spec, {name: partial(chosen, rule) for name, rule in known.items()}, FunctionType, also)


def _no_arguments() -> None:
    """Accepts no arguments: the check of rules that have none."""
