"""The description of an environment that a policy is given before an episode."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array

if TYPE_CHECKING:
    from fedbandit_envs.core.features import Features


class ActionFormat(Protocol):
    """An action format: another action space for learning agents, and a translation into the environment's actions.

    Attributes:
        space: The space of one agent's choices.
    """

    space: spaces.Space[Any]

    def to_action(self, choice: Any, observation: Mapping[str, Array]) -> Any:
        """Translates choices into the environment's actions.

        Args:
            choice: Elements of ``space`` with leading axes ``(replicas, agents)``; a mapping of them for a ``Dict``.
            observation: The observations of the same agents, same leading axes.

        Returns:
            Actions of the environment, same leading axes; a mapping where its action space is a ``Dict``.
        """


class PolicySpec(NamedTuple):
    """The description of an environment that a policy is given before an episode.

    Attributes:
        observation: One agent's observation space; batches add the leading axes ``(replicas, agents)``.
        action: One agent's action space; batches add the same axes.
        horizon: Number of rounds of an episode.
        release: Space of one agent's release; for noisy releases it bounds the variances of the noise.
        agents: Number of agents in the federation.
        public: Further public constants of the problem by name; the environment's page lists them.
        action_formats: The available action formats by name, the environment's own first.
        features: Class that computes features of an agent's history; None where the problem has none.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> spec = make_federation("FedArms-v0", num_agents=4, num_arms=3).policy_spec
        >>> spec.agents, spec.horizon, spec.action, list(spec.action_formats)
        (4, 1000, Discrete(3), ['arm', 'values'])
    """

    observation: spaces.Dict
    action: spaces.Space[Any]
    horizon: int
    release: spaces.Dict
    agents: int
    public: Mapping[str, Any]
    action_formats: Mapping[str, ActionFormat]
    features: "type[Features] | None"

    @property
    def own_action(self) -> spaces.Space[Any]:
        """One agent's action space; where agents choose when to send, without that choice."""
        action = self.action
        return action["action"] if isinstance(action, spaces.Dict) else action
