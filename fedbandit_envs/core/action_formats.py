"""Action formats shared by all problems, and actions that are mappings: an action with further entries beside it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.policy_spec import ActionFormat


class EntryRequiredError(TypeError):
    """An action lacks an entry beside the environment's own action, such as ``message`` or ``send``."""


def add_entry(action: Any, name: str, entry: Any) -> dict[str, Any]:
    """Returns actions with a further entry: a flat mapping of ``action``, the entries it has already, and the new one.

    It works in the same way for spaces of actions.

    Args:
        action: The environment's actions or their space, or a mapping of them and of other entries.
        name: Name of the new entry.
        entry: The new entry.
    """
    beside = action if isinstance(action, Mapping) else {"action": action}
    return {**beside, name: entry}


def take_entry(action: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    """Returns actions without an entry, and the entry; the reverse of :func:`add_entry`."""
    left = {other: part for other, part in action.items() if other != name}
    return left["action"] if left.keys() == {"action"} else left, action[name]


def require_action_entries(action: Any, names: Collection[str], reason: str) -> None:
    """Raises an error unless an action is a mapping of the given names.

    Args:
        action: The action.
        names: The names.
        reason: Why the environment needs more than an array, for the error.

    Raises:
        EntryRequiredError: The action is no mapping, or has other names; the error says which are missing.
    """
    if isinstance(action, Mapping) and action.keys() == set(names):
        return
    given, found = ["action"], f"a {type(action).__name__}"
    if isinstance(action, Mapping):
        given, found = list(action), f"a mapping of {list(action)}"
    missing = "".join(f", without {name!r}" for name in sorted(names) if name not in given)
    *most, last = map(repr, sorted(names))
    raise EntryRequiredError(
        f"action is {found}{missing}; a mapping of {', '.join(most)} and {last} is required, since {reason}"
    )


class OwnActions:
    """The environment's own actions as an action format: choices are not translated."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        """Takes one agent's action space."""
        self.space = space

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Array:
        """Returns ``choice`` as it is."""
        return choice


class WithEntry:
    """An action format that consists of another format's choice and one entry that is passed on, such as ``send``.

    Its space is a flat ``Dict`` of ``action``, of entries that the other format has already, and of the new one;
    choices and actions are mappings of arrays with these names.
    """

    def __init__(self, action_format: ActionFormat, name: str, space: spaces.Space[Any]) -> None:
        """Adds an entry to a format.

        Args:
            action_format: The other format.
            name: Name of the entry.
            space: Space of the entry.
        """
        self._format, self._name = action_format, name
        self.space: spaces.Space[Any] = spaces.Dict(add_entry(action_format.space, name, space))

    def to_action(self, choice: Mapping[str, Any], observation: Mapping[str, Array]) -> Mapping[str, Any]:
        """Returns the environment's action: the other format translates its part, the entry stays as it is."""
        own, entry = take_entry(choice, self._name)
        return add_entry(self._format.to_action(own, observation), self._name, entry)


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
