"""Checks of parameters, whose errors name the parameter, its value and the allowed values."""

import math
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

from fedbandit_envs.basics.arrays import Array

Value = TypeVar("Value")

_MOST_NAMES = 20
"""Longest list of allowed values that an error shows whole."""

MOST_OF_A_SIZE = 1 << 20
"""Largest number of agents, of arms or of another size of a problem: more would be made for minutes, not played."""


LARGEST = 1e150
"""Numbers of data lie below this absolute value, so that sums of their squares are finite."""


def require_number(
    name: str, value: object, least: float, most: float, *, open_below: bool = False, open_above: bool = False
) -> float:
    """Returns ``value`` as a float if it is a finite number in ``[least, most]``, and otherwise raises an error.

    Args:
        name: Name of the parameter, for the error.
        value: Value of the parameter.
        least: Smallest allowed number.
        most: Largest allowed number; infinity where there is no upper bound.
        open_below: Whether ``least`` itself is excluded.
        open_above: Whether ``most`` itself is excluded.

    Raises:
        TypeError: The value is no number.
        ValueError: The value is outside the interval or not finite.
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


def require_size(name: str, value: object) -> float:
    """Returns ``value`` as a float if it is a number > 0 whose powers and quotients floating-point numbers can hold.

    Raises:
        TypeError: The value is no number.
        ValueError: The value is not > 0, below 1e-60 or above 1e60.
    """
    number = require_number(name, value, 0, math.inf, open_below=True)
    return require_number(name, number, 1e-60, 1e60)


def require_epsilon(epsilon: object, name: str = "epsilon") -> None:
    """Raises an error unless ``epsilon`` is a size (:func:`require_size`), or infinity for no noise."""
    if epsilon != math.inf:
        require_size(name, epsilon)


def require_integer(name: str, value: object, least: int, most: int | None = None) -> int:
    """Returns ``value`` as an int if it is an integer in ``[least, most]``, and otherwise raises an error.

    Args:
        name: Name of the parameter, for the error.
        value: Value of the parameter.
        least: Smallest allowed integer.
        most: Largest allowed integer; None where there is no upper bound.

    Raises:
        TypeError: The value is no integer.
        ValueError: The value is outside the interval.
    """
    allowed = f">= {least}" if most is None else f"in [{least}, {most}]"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} is {value!r}; an integer {allowed} is required")
    number = int(value)
    if number < least or (most is not None and number > most):
        raise ValueError(f"{name} is {value!r}; an integer {allowed} is required")
    return number


def require_choice(name: str, value: Value, allowed: Collection[object]) -> Value:
    """Returns ``value`` if it is among the ``allowed`` values, and otherwise raises an error.

    Raises:
        ValueError: The value is not allowed. The message has all that are, or of many the nearest ones.
    """
    if value not in allowed:
        names = {str(one).lower(): repr(one) for one in allowed}
        few = len(names) <= _MOST_NAMES
        near = get_close_matches(str(value).lower(), names, 1 if few else 5, 0.6 if few else 0.0)
        shown = ", ".join(names.values()) if few else f"{len(names)} names"
        question = f"; did you mean {', '.join(names[one] for one in near)}?" if near else ""
        raise ValueError(f"{name} is {value!r}; one of {shown} is required{question}")
    return value


def require_flag(name: str, value: object) -> bool:
    """Returns ``value`` if it is True or False, and otherwise raises an error.

    Raises:
        TypeError: The value is neither True nor False.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}; True or False is required")
    return bool(value)


def require_seeds(name: str, value: object) -> None:
    """Raises an error unless ``value`` is None, a non-negative integer, or a non-empty sequence of such integers.

    Raises:
        TypeError: The value is none of these.
        ValueError: A seed is negative, or the sequence is empty.
    """
    if value is None or (isinstance(value, Integral) and require_integer(name, value, 0) >= 0):
        return
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name} is {value!r}; None, an integer >= 0 or a sequence of them is required")
    if not value:
        raise ValueError(f"{name} is {value!r}; at least one integer >= 0 is required in a sequence")
    for place, seed in enumerate(value):
        require_integer(f"{name}[{place}]", seed, 0)


def require_valid(name: str, array: Array, valid: Array, allowed: str) -> None:
    """Raises an error unless all entries of an array are valid.

    Args:
        name: Name of the parameter, for the error.
        array: The array.
        valid: Whether each entry is valid, bool, same shape.
        allowed: Description of valid entries, for the error.

    Raises:
        ValueError: An entry is not valid; the error names the first one and its value.
    """
    if not valid.all():
        where = [int(i) for i in np.argwhere(~valid)[0]]
        raise ValueError(f"{name}{where or ''} is {array[tuple(where)]}; {allowed} are required")


def require_array(
    name: str, value: object, shapes: Mapping[int, str], least: float = -LARGEST, most: float = LARGEST
) -> Array:
    """Returns ``value`` as a float64 array if its number of axes is allowed and its entries are finite and in bounds.

    Args:
        name: Name of the parameter, for the error.
        value: Array or nested lists.
        shapes: The allowed numbers of axes, each with the shape, such as ``(arms,)``, for the error.
        least: Smallest allowed entry.
        most: Largest allowed entry.

    Raises:
        ValueError: These are no numbers (texts and dates are none) or some are masked, the shape is another one, an
            axis is empty, or an entry is not allowed.
    """
    required = f"{' or '.join(shapes.values())} is required"
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is {value!r} ({error}); {required}") from None
    if given.dtype.kind not in "biuf" or np.ma.is_masked(value):
        raise ValueError(f"{name} is {value!r}; {required}, of numbers")
    array = np.array(given, np.float64)
    if array.ndim not in shapes or 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; {required}")
    valid = np.isfinite(array) & (array >= least) & (array <= most)
    require_valid(name, array, valid, f"finite numbers in [{least:g}, {most:g}]")
    return array


def chosen_sizes(
    asked: Mapping[str, int | None], shape: tuple[int, ...], defaults: Mapping[str, int], source: str
) -> tuple[int, ...]:
    """Returns sizes (such as numbers of agents and arms): the user's, else those of given data, else defaults.

    Args:
        asked: Sizes by name that the user has passed as arguments, in the order of what is returned; None where an
            argument was left out.
        shape: The sizes of data that the user has passed: the last of those that are asked for, or fewer.
        defaults: Sizes where the user has passed neither a size nor data.
        source: Name of the data, for the error.

    Raises:
        TypeError: A size is no integer.
        ValueError: A size is below 1 or above :data:`MOST_OF_A_SIZE`, or differs from the size of the data.
    """
    sizes: list[int] = []
    given = dict(zip(reversed([*asked]), reversed(shape), strict=False))
    for name, value in asked.items():
        if value is not None:
            require_integer(name, value, 1, MOST_OF_A_SIZE)
            if given.get(name, value) != value:
                raise ValueError(f"{name} is {value}; None or {given[name]}, as {source}, is required")
        sizes.append(int({**defaults, **given}[name] if value is None else value))
    return tuple(sizes)
