"""Checks of parameters: an error names the parameter, the value it had and what is allowed."""

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def require_number(
    name: str, value: Any, least: float, most: float, *, open_below: bool = False, open_above: bool = False
) -> float:
    """Returns a finite number in ``[least, most]``, without the ends that are open; anything else is refused.

    Args:
        name: The parameter's, for the error.
        value: What it was given.
        least: The lower end.
        most: The upper end; infinity where there is none.
        open_below: Whether the lower end itself is refused.
        open_above: Whether the upper end itself is.

    Raises:
        TypeError: The value is no number.
        ValueError: The value is outside.
    """
    allowed = f"a finite number {'>' if open_below else '>='} {least:g}"
    if most < math.inf:
        allowed = f"a number in {'(' if open_below else '['}{least:g}, {most:g}{')' if open_above else ']'}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} is {value!r}; {allowed} is required")
    number = float(value)
    if not (math.isfinite(number) and least <= number <= most) or (
        (open_below and number == least) or (open_above and number == most)
    ):
        raise ValueError(f"{name} is {value!r}; {allowed} is required")
    return number


def require_integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Returns an integer of at least ``least``, and of at most ``most`` where that is given; others are refused.

    Args:
        name: The parameter's, for the error.
        value: What it was given.
        least: The smallest allowed.
        most: The largest; None where there is none.

    Raises:
        TypeError: The value is no integer.
        ValueError: The value is outside.
    """
    allowed = f">= {least}" if most is None else f"in [{least}, {most}]"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} is {value!r}; an integer {allowed} is required")
    number = int(value)
    if number < least or (most is not None and number > most):
        raise ValueError(f"{name} is {value!r}; an integer {allowed} is required")
    return number


def require_choice(name: str, value: Any, allowed: Collection[Any]) -> Any:
    """Returns a value that is one of those allowed; others are refused.

    Raises:
        ValueError: The value is another.
    """
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; one of {', '.join(map(repr, allowed))} is required")
    return value


def require_flag(name: str, value: Any) -> bool:
    """Returns True or False; anything else is refused.

    Raises:
        TypeError: The value is neither.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}; True or False is required")
    return bool(value)


def require_seeds(name: str, value: Any) -> None:
    """Requires None, a non-negative integer, or a sequence of some.

    Raises:
        TypeError: The value is none of these.
        ValueError: A seed is negative, or there is none in the sequence.
    """
    if value is None:
        return
    if isinstance(value, Integral):
        require_integer(name, value, 0)
        return
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name} is {value!r}; None, an integer >= 0 or a sequence of them is required")
    if not value:
        raise ValueError(f"{name} is {value!r}; at least one integer >= 0 is required in a sequence")
    for place, seed in enumerate(value):
        require_integer(f"{name}[{place}]", seed, 0)


def require_valid(name: str, array: Any, valid: Any, allowed: str) -> None:
    """Requires that all entries of an array are valid.

    Args:
        name: The parameter's, for the error.
        array: The array.
        valid: Whether each entry is valid, bool, same shape.
        allowed: Description of valid entries, for the error.

    Raises:
        ValueError: An entry is not valid; the error names the first one and its value.
    """
    if not valid.all():
        where = [int(i) for i in np.argwhere(~valid)[0]]
        raise ValueError(f"{name}{where} is {array[tuple(where)]}; {allowed} are required")


def chosen_sizes(
    asked: Mapping[str, int | None], given: Mapping[str, int], defaults: Mapping[str, Any], source: str
) -> dict[str, int]:
    """Returns sizes by name: those asked for, else those of given data, else the defaults.

    Args:
        asked: Sizes asked for; None where none is.
        given: Sizes of the data that were given.
        defaults: Sizes where neither says one.
        source: Name of the data, for the error.

    Raises:
        TypeError: A size is no integer.
        ValueError: A size is below 1, or differs from that of the data.
    """
    sizes = {}
    for name, value in asked.items():
        if value is not None:
            require_integer(name, value, 1)
            if given.get(name, value) != value:
                raise ValueError(f"{name} is {value}; None or {given[name]}, as {source}, is required")
        sizes[name] = int({**defaults, **given}[name] if value is None else value)
    return sizes
