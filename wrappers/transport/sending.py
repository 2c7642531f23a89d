"""Action formats with the choice of whether to send, for learning agents that choose when to send."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.action_check import require_finite
from fedbandit_envs.arrays import Array
from fedbandit_envs.simplex import Simplex
from fedbandit_envs.spaces import ActionFormat


class Sending:
    """Another action format, with the choice of whether to send beside it.

    Its space is a ``Dict`` of ``action`` and ``send``, so choices and actions are mappings of arrays.
    """

    def __init__(self, action_format: ActionFormat) -> None:
        """Sets the space ``Dict({"action": <the format's>, "send": Discrete(2)})``."""
        self._format = action_format
        self.space: spaces.Space[Any] = spaces.Dict(
            {"action": action_format.space, "send": spaces.Discrete(2)}
        )

    def to_action(self, choice: Mapping[str, Array], observation: Mapping[str, Array]) -> Mapping[str, Array]:
        """Translates ``action`` and leaves ``send`` as it is."""
        return {"action": self._format.to_action(choice["action"], observation), "send": choice["send"]}


class FlatSending:
    """The same in one flat space, for learners that take no ``Dict``, and for control of all agents at once.

    | the other format's space | this one's | who sends |
    |---|---|---|
    | `Discrete(n)` | `Discrete(2 n)` | whose choice is n or more: n + k does k and sends |
    | `MultiDiscrete(nvec)` | `MultiDiscrete([*nvec, 2])` | whose last entry is 1 |
    | `Box`, `(size,)` | `Box`, `(size + 1,)`, the last in [0, 1] | whose last entry exceeds 0.5 |
    """

    def __init__(self, action_format: ActionFormat) -> None:
        """Sets the space.

        Args:
            action_format: One whose space :meth:`fits`.
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
        """Says whether a flat space holds this one and a choice; none holds a simplex, which nobody hits exactly."""
        if isinstance(space, spaces.Box):
            return len(space.shape) == 1 and not isinstance(space, Simplex)
        return isinstance(space, spaces.Discrete) or (
            isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1
        )

    def to_action(self, choice: Array, observation: Mapping[str, Array]) -> Mapping[str, Array]:
        """Takes choices apart into ``action`` and ``send``.

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
        return {"action": action, "send": send}


def _refuse_outside(choice: Array, first: int, number: int) -> None:
    inside = (choice >= first) & (choice < first + number) & (choice == np.floor(choice))
    if not inside.all():
        replica, agent = (int(i) for i in np.argwhere(~inside)[0])
        raise ValueError(
            f"action: the choice of row {agent} (replica {replica}) is {choice[replica, agent]}; an integer in "
            f"[{first}, {first + number - 1}] is required"
        )
