"""Action formats with a ``send`` entry, for learning agents that choose when to send."""

from collections.abc import Mapping
from typing import Any

from gymnasium import spaces

from fedbandit_envs.federation import ActionFormat, Array


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
