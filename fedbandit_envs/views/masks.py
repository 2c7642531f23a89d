"""Which choices are allowed, for learners that know of masks."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from gymnasium import spaces

from fedbandit_envs.arrays import Array


@runtime_checkable
class MaskedFormat(Protocol):
    """An action format, discrete, that says what is allowed; see :class:`~fedbandit_envs.spaces.ActionFormat`."""

    space: spaces.Space[Any]

    def to_action(self, choice: Any, observation: Mapping[str, Array]) -> Any:
        """Translates choices."""

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Says what is allowed.

        Args:
            observation: The observations of those who choose, leading axes ``(replicas, agents)``.

        Returns:
            Bool ``(replicas, agents, entries)``: of a ``Discrete`` its choices, of a ``MultiDiscrete`` those of its
            first entry, then those of its second, and so on.
        """
