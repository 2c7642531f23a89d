"""Federations built from JSON: the entry point of an environment and a list of wrappers."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv

Stack = Sequence[Sequence[Any]]
"""Wrappers from the inside out, each a pair of its entry point and its keyword arguments; can be written as JSON."""


def build(federation: str, stack: Stack, **kwargs: Any) -> FederatedEnv:
    """Builds a federation and puts wrappers around it.

    Args:
        federation: Entry point ``"module:Class"`` of the federation.
        stack: Wrappers from the inside out: pairs of a wrapper's name or entry point and keyword arguments, such as
            ``["fedbandit_envs.wrappers.transport.channel:Channel", {"schedule": "every_round"}]``.
        **kwargs: Passed to the federation.

    Returns:
        The outermost wrapper, or the federation if the stack is empty.

    Raises:
        TypeError: The stack is not of that form, or one of its entry points makes no federation.
        ValueError: An entry point is not of the form ``"module:attribute"``.
        Exception: Any error of the federation or a wrapper; a note names its position in the stack.
    """
    layers = checked(stack)
    env: FederatedEnv = resolve(federation)(**kwargs)
    for place, (entry_point, arguments) in enumerate(layers):
        try:
            wrapped = find_wrapper(entry_point)(env, **arguments)
        except Exception as error:
            error.add_note(f"raised by stack[{place}], {entry_point!r} with {dict(arguments)}")
            raise
        if not isinstance(wrapped, FederatedEnv):
            raise TypeError(
                f"stack[{place}] is {entry_point!r}, which makes a {type(wrapped).__name__}; the entry point "
                "of a FederatedWrapper is required"
            )
        env = wrapped
    return env


def find_wrapper(name: str) -> Any:
    """Returns a wrapper's class, given its entry point ``"module:Class"`` or its name in the registry of wrappers.

    Raises:
        ValueError: No wrapper has this name, and the name has no colon, as an entry point would.
        ImportError: The module of the entry point does not exist.
        AttributeError: The module of the entry point has no such attribute.
    """
    if ":" in name:
        return resolve(name)
    # The registry is imported here by its name: wrappers are a higher layer of the package, which modules of this layer
    # may not import at the top.
    wrappers = resolve("fedbandit_envs.wrappers.registry:WRAPPERS")
    require_choice("wrapper", name, wrappers)
    return wrappers[name]


def checked(stack: Any) -> Stack:
    """Returns a stack unchanged after checking its form.

    Raises:
        TypeError: The stack is not a sequence of pairs, each of a string (the wrapper) and a mapping from strings (its
            keyword arguments).
    """
    if isinstance(stack, str) or not isinstance(stack, Sequence):
        raise TypeError(f"stack is {stack!r}; a sequence of [entry point, keyword arguments] is required")
    for place, layer in enumerate(stack):
        match layer:
            case [str(), Mapping() as arguments] if all(isinstance(name, str) for name in arguments):
                continue
        raise TypeError(
            f"stack[{place}] is {layer!r}; [entry point, keyword arguments], a string and a mapping, is required"
        )
    return stack
