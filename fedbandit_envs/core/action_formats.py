"""Action formats shared by all problems."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array


class OwnActions:
    """The environment's own actions as an action format: choices are not translated."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        """Takes one agent's action space."""
        self.space = space

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns ``choice`` as it is."""
        return choice


class Estimates:
    """An action format of numbers in a box, such as estimates of means, which a function translates into actions."""

    def __init__(
        self, size: int, translate: Callable[[Array, Mapping[str, Array]], Array], low: float = -1.0
    ) -> None:
        """Sets the space ``Box(low, 1, (size,))``.

        Args:
            size: Number of entries.
            translate: A function that maps choices ``(replicas, agents, size)`` and observations to actions, and raises
                a ``ValueError`` for entries that it does not accept. It must be picklable.
            low: Lower bound of the entries.
        """
        self.space: spaces.Space[Any] = spaces.Box(low, 1.0, (size,), np.float32)
        self._translate = translate

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns the actions that the problem's function makes of the choices."""
        return self._translate(choice, observation)


def require_entries(name: str, choice: Array, valid: Array, allowed: str) -> None:
    """Raises an error unless all entries of a choice are valid.

    Args:
        name: Name of the choice, for the error.
        choice: Numbers ``(replicas, agents, entries)`` chosen by learning agents.
        valid: Whether each entry is valid, bool, same shape.
        allowed: Description of valid entries, for the error.

    Raises:
        ValueError: An entry is not valid; the error names agent, entry and value.
    """
    if not valid.all():
        replica, agent, entry = (int(i) for i in np.argwhere(~valid)[0])
        raise ValueError(
            f"action: entry {entry} of the {name} of row {agent} (replica {replica}) is "
            f"{choice[replica, agent, entry]}; {allowed} is required"
        )


def require_finite(name: str, choice: Array) -> None:
    """Raises a ``ValueError`` unless all numbers of a choice are finite; see :func:`require_entries`."""
    require_entries(name, choice, np.isfinite(choice), "a finite number")
