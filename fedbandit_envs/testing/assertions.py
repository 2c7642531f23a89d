"""Assertions whose messages state what was found and what is required."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array


def require(holds: Any, message: str) -> None:
    """Raises an ``AssertionError`` unless a condition holds; unlike ``assert``, under ``python -O`` too.

    Args:
        holds: The condition.
        message: The error message: what was found instead, what is required, and where to correct it.
    """
    if not holds:
        raise AssertionError(message)


@contextmanager
def refusal(call: str, *errors: type[Exception]) -> Iterator[None]:
    """A context manager that requires the code in its block to raise one of the given errors.

    Args:
        call: Description of what the block does, for the error message.
        *errors: The classes of errors that are accepted.

    Raises:
        AssertionError: The block raises no error. Other errors go on.
    """
    try:
        yield
    except errors:
        return
    raise AssertionError(f"{call} goes through; an error is required, before anything happens")


def require_same(what: str, found: Any, expected: Any, advice: str = "equality is required") -> None:
    """Requires that two nested mappings and sequences of arrays are equal to the bit.

    Args:
        what: Description of the two, for the error message.
        found: The mapping, sequence or array under test.
        expected: The one that it must equal.
        advice: What is required and where to correct it, for the error message.

    Raises:
        AssertionError: They differ; the message names the first place where they differ.
    """
    place = difference(found, expected)
    require(not place, f"{what}{place}; {advice}")


def require_zero(what: str, found: Array, advice: str) -> None:
    """Requires that all numbers of an array are 0.

    Args:
        what: Description of the array, for the error message.
        found: The array.
        advice: What is required and where to correct it, for the error message.

    Raises:
        AssertionError: A number is not 0.
    """
    require(not found.any(), f"{what} is {found[found != 0][:1]} in places; 0 is required: {advice}")


def difference(a: Any, b: Any) -> str:
    """Returns where two nested mappings and sequences of arrays differ first, and how; empty if they are equal."""
    if isinstance(a, (np.ndarray, np.generic)) and isinstance(b, (np.ndarray, np.generic)):
        return _unequal(np.asarray(a), np.asarray(b))
    places: Any = a
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return f" has the names {list(a)}, not {list(b)}"
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            return f" has the length {len(a)}, not {len(b)}"
        places = range(len(a))
    else:
        # Two NaNs count as equal here and in `_unequal`. `a != a` holds for NaN only.
        return "" if a == b or (a != a and b != b) else f" is {a!r}, not {b!r}"
    for place in places:
        if found := difference(a[place], b[place]):
            return f"[{place!r}]{found}"
    return ""


def _unequal(a: Array, b: Array) -> str:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f" is {a.dtype} {a.shape}, not {b.dtype} {b.shape}"
    # Most arrays are equal to the bit, which is found out faster than whether they are equal or NaN.
    if a.tobytes() == b.tobytes() or not (unequal := (a != b) & ~((a != a) & (b != b))).any():
        return ""
    place = tuple(int(i) for i in np.argwhere(unequal)[0])
    return f" is {a[place]}, not {b[place]}{f', at {place}' if place else ''}"


def taken(tree: Any, place: Any) -> Any:
    """Returns nested mappings in which every array of ``tree`` is replaced by its part ``array[place]``."""
    return mapped(lambda array: array[place], tree)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Returns nested mappings in which every array of ``tree`` is replaced by ``function(array)``."""
    # Whether an object is a mapping takes longer to find out than whether it is an array.
    if not isinstance(tree, np.ndarray) and isinstance(tree, Mapping):
        return {name: mapped(function, part) for name, part in tree.items()}
    return function(tree)
