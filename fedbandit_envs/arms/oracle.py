"""Oracles: which superarm is best for given values of arms (thesis, Definition 2.4)."""

from typing import Protocol

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.checks import require_choice
from fedbandit_envs.entry_points import resolve


class Oracle(Protocol):
    """Chooses superarms."""

    def __call__(self, values: Array, slots: int) -> Array:
        """Returns the arms of a best superarm.

        Args:
            values: Of arms, float64 ``(..., arms)``: true means, or bounds of them; infinity for what is not known,
                minus infinity for what cannot be had.
            slots: How many arms a superarm has.

        Returns:
            Numbers of arms, integers ``(..., slots)``.
        """


def largest(values: Array, slots: int) -> Array:
    """Returns the arms with the largest values, the first ones where values are the same; see :class:`Oracle`."""
    if slots == 1:
        return values.argmax(axis=-1)[..., np.newaxis]
    return np.argsort(-values, axis=-1, kind="stable")[..., :slots]


def make_oracle(oracle: str) -> Oracle:
    """Makes an oracle from its name, ``"largest"``, or from its entry point.

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
