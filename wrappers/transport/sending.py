"""The flat action format of learning agents that choose in each round not only an action but also whether to send."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.action_formats import add_entry, require_finite
from fedbandit_envs.core.policy_spec import ActionFormat
from fedbandit_envs.core.simplex import Simplex


class FlatSending:
    """An action format that consists of another format's choice and the choice of whether to send, in one flat space.

    It serves learners that accept no ``Dict`` space, and control of all agents at once.

    | the other format's space | this format's space | the agent sends if |
    |---|---|---|
    | `Discrete(n)` | `Discrete(2 n)` | its choice is at least n; n + k means choice k and sending |
    | `MultiDiscrete(nvec)` | `MultiDiscrete([*nvec, 2])` | the last entry is 1 |
    | `Box`, `(size,)` | `Box`, `(size + 1,)`, the last in [0, 1] | the last entry exceeds 0.5 |
    """

    def __init__(self, action_format: ActionFormat) -> None:
        """Sets the space according to the table.

        Args:
            action_format: The format to extend; :meth:`fits` must be true for its space.
        """
        self._format = action_format
        inner = action_format.space
        if isinstance(inner, spaces.Discrete):
            self._most, first = int(inner.n), int(inner.start)
            self.space: spaces.Space[Any] = spaces.Discrete(2 * self._most, start=first)
        elif isinstance(inner, spaces.MultiDiscrete):
            self.space = spaces.MultiDiscrete([*inner.nvec, 2], dtype=inner.dtype.type)
        elif isinstance(inner, spaces.Box):
            low, high = np.append(inner.low, 0.0), np.append(inner.high, 1.0)
            self.space = spaces.Box(low.astype(inner.dtype), high.astype(inner.dtype), dtype=inner.dtype.type)

    @staticmethod
    def fits(space: spaces.Space[Any]) -> bool:
        """Returns whether the table above has a row for ``space``: only then can this class extend a format of it.

        A simplex is a ``Box``, but has no row: learners rarely output numbers that sum to exactly 1.
        """
        if isinstance(space, spaces.Box):
            return len(space.shape) == 1 and not isinstance(space, Simplex)
        return isinstance(space, spaces.Discrete) or (
            isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1
        )

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns the environment's action, a mapping with the entry ``send``, from an element of the flat space.

        Raises:
            ValueError: A discrete choice lies outside the space, or a box's last entry is not finite.
        """
        if isinstance(self.space, spaces.Discrete):
            _refuse_outside(choice, int(self.space.start), 2 * self._most)
            send = choice >= self.space.start + self._most
            own = choice - self._most * send
        else:
            own, send = choice[..., :-1], choice[..., -1]
        action = self._format.to_action(own, observation)
        if isinstance(self.space, spaces.Box):
            require_finite("choice", choice)
            send = send > 0.5
        return add_entry(action, "send", send)


def _refuse_outside(choice: Array, first: int, number: int) -> None:
    inside = (choice >= first) & (choice < first + number) & (choice == np.floor(choice))
    if not inside.all():
        replica, agent = (int(i) for i in np.argwhere(~inside)[0])
        raise ValueError(
            f"action: the choice of row {agent} (replica {replica}) is {choice[replica, agent]}; an integer in "
            f"[{first}, {first + number - 1}] is required"
        )
