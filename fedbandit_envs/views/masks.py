"""Action masks: which choices are allowed, for learning algorithms that use them."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array


@runtime_checkable
class MaskedFormat(Protocol):
    """A discrete :class:`~fedbandit_envs.core.policy_spec.ActionFormat` whose masks tell which choices are allowed."""

    space: spaces.Space[Any]

    def to_action(self, choice: Any, observation: Mapping[str, Array]) -> Any:
        """Translates choices into the environment's actions."""

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Returns which choices are allowed.

        Args:
            observation: The agents' observations, leading axes ``(replicas, agents)``.

        Returns:
            Bool ``(replicas, agents, entries)``. A ``Discrete`` space has an entry for each choice; a ``MultiDiscrete``
            has an entry for each choice of its first component, then for each choice of its second, and so on.
        """
