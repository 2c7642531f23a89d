"""Oracles: functions that return the best superarm for given values of arms (thesis, Definition 2.4)."""

from collections.abc import Callable

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import resolve

Oracle = Callable[[Array, int], Array]
"""A function that returns the arms of best superarms, integers ``(..., slots)``.

Its arguments are the values of arms, float64 ``(..., arms)`` (true means or bounds on them; infinity for unknown arms,
minus infinity for arms that cannot be pulled), and ``slots``, the number of arms in a superarm.
"""


def largest(values: Array, slots: int) -> Array:
    """Returns the arms with the largest values, the first ones where values are the same; an :data:`Oracle`."""
    if slots == 1:
        return values.argmax(axis=-1)[..., np.newaxis]
    return np.argsort(-values, axis=-1, kind="stable")[..., :slots]


def make_oracle(oracle: str) -> Oracle:
    """Returns the oracle with the name ``"largest"``, or from its entry point.

    Raises:
        TypeError: It is neither, or what the entry point names cannot be called.
        ValueError: The name is unknown.
    """
    if not isinstance(oracle, str):
        raise TypeError(f"oracle is {oracle!r}; 'largest' or an entry point 'module:attribute' is required")
    if ":" not in oracle:
        require_choice("oracle", oracle, ("largest", "module:attribute"))
        return largest
    named: Oracle = resolve(oracle)
    if not callable(named):
        raise TypeError(f"oracle {oracle!r} names {named!r}; a function of values and slots is required")
    return named
